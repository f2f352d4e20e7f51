"""The table of models: what each is for, how large it is, and what it needs.

A row with `make` is a network for images, built from the number of outputs and the shape of the images. It expects
floats (batch, channels, height, width); `images.Normalised` and `images.Standardised` convert uint8 images. The name of
a pretrained model ends in a colon if a name in its library follows. `training.plan` prepares the data of other rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from undermargin.models.densenet import densenet
from undermargin.models.lenet import lenet, lenet5, lenet_cifar
from undermargin.models.photo_resnet import photo_resnet
from undermargin.models.pretrained import efficientnet, huggingface, minilm, timm, torchvision
from undermargin.models.pretrained.scaling import Scaling
from undermargin.models.resnet import fast_resnet, small_resnet
from undermargin.models.small import small
from undermargin.models.vgg import vgg
from undermargin.models.wide_resnet import wide_resnet
from undermargin.sources.samples import Kind

NUM_CLASSES = 10  # of the networks whose parameters are counted


class MakeNetwork(Protocol):
    """Builds a network; channels and side default to the data set that the network is usually trained on."""

    def __call__(self, num_outputs: int, *, channels: int = ..., side: int = ...) -> nn.Module:
        """A newly initialized network for images with this side in pixels."""


class ImageEncoder(NamedTuple):
    """A pretrained image model. `prepare` is quick and raises if something is missing; `load` reads the weights."""

    prepare: Callable[[str], Scaling]
    load: Callable[[str], nn.Module]  # float (batch, 3, size, size) -> (batch, features)


class TextEncoder(NamedTuple):
    """A pretrained text model; `prepare` returns the tokenizer."""

    prepare: Callable[[str], Any]
    load: Callable[[str], nn.Module]  # tokens and mask (batch, tokens) -> (batch, features)


@dataclass(frozen=True)
class Model:
    """One row of MODELS."""

    kinds: tuple[Kind, ...]  # of data that it takes
    description: str
    make: MakeNetwork | None = None  # a network for images
    encoders: Mapping[Kind, ImageEncoder | TextEncoder] = field(default_factory=dict)  # a pretrained one, by kind
    extra: str = ""  # what must be installed: undermargin[extra]
    known_parameters: int | None = None  # of a pretrained model of one size

    @property
    def num_parameters(self) -> int | None:
        """The number of parameters with ten classes; None if it depends on the data or on the name after the colon."""
        if self.make is None:
            return self.known_parameters
        with torch.device("meta"):  # no memory, no draws
            return sum(weight.numel() for weight in self.make(NUM_CLASSES).parameters())


def _network(description: str, make: Callable[..., nn.Module], **options: Any) -> Model:
    return Model(("images",), description, partial(make, **options) if options else make)


def _efficientnet(name: str, num_parameters: int) -> Model:
    encoder = ImageEncoder(efficientnet.scaling, efficientnet.network)
    size = efficientnet.SIZES[name]
    description = f"features of EfficientNet-Lite for photos of {size} pixels, and one hidden layer"
    return Model(("images",), description, None, {"images": encoder}, efficientnet.EXTRA, num_parameters)


_HUGGING_FACE: Mapping[Kind, ImageEncoder | TextEncoder] = {
    "images": ImageEncoder(huggingface.scaling, huggingface.image_network),
    "text": TextEncoder(huggingface.tokenizer, huggingface.text_network),
}

MODELS: Mapping[str, Model] = MappingProxyType(
    {
        # the defaults: the first row for a kind of data
        "resnet8-fast": _network(
            "residual network whose first convolution leaves about 16 pixels a side", fast_resnet, depth=8
        ),
        "latent": Model(("text",), "latent semantic analysis and one hidden layer"),
        "network": Model(("table", "embeddings"), "one hidden layer; categories of a table are embedded"),
        # others for the same data
        "resnet20-fast": _network("the same with 20 layers", fast_resnet, depth=20),
        "linear": Model(("embeddings",), "linear classifier"),
        "boosting": Model(("table", "embeddings"), "gradient-boosted trees"),
        # the paper's, and those of its authors' code
        "resnet20": _network("residual network for 32 pixels", small_resnet, depth=20),
        "resnet32": _network("the paper's main network", small_resnet, depth=32),
        "resnet44": _network("residual network for 32 pixels", small_resnet, depth=44),
        "resnet56": _network("residual network for 32 pixels", small_resnet, depth=56),
        "resnet110": _network("residual network for 32 pixels", small_resnet, depth=110),
        "resnet18": _network("residual network for photos", photo_resnet, depth=18),
        "resnet34": _network("residual network for photos", photo_resnet, depth=34),
        "resnet50": _network("residual network for photos, with bottlenecks", photo_resnet, depth=50),
        "densenet40": _network("densely connected network", densenet, depth=40),
        "densenet64": _network("densely connected network", densenet, depth=64),
        "densenet100": _network("densely connected network", densenet, depth=100),
        "vgg11": _network("VGG without batch normalization", vgg, depth=11),
        "vgg13": _network("VGG without batch normalization", vgg, depth=13),
        "vgg16": _network("VGG without batch normalization", vgg, depth=16),
        "vgg19": _network("VGG without batch normalization", vgg, depth=19),
        "wrn28-10": _network("wide residual network", wide_resnet, depth=28, widening=10),
        "lenet": _network("LeNet for MNIST, as in Caffe", lenet),
        "lenet5": _network("LeNet-5", lenet5),
        "lenet-cifar": _network("LeNet-5 for small photos", lenet_cifar),
        # for laptops and desktops: the first convolution halves the image
        "resnet8-half": _network("residual network, image halved at once", small_resnet, depth=8, is_halved=True),
        "resnet14-half": _network("residual network, image halved at once", small_resnet, depth=14, is_halved=True),
        "resnet32-half": _network("residual network, image halved at once", small_resnet, depth=32, is_halved=True),
        "densenet22-half": _network("densely connected, image halved at once", densenet, depth=22, is_halved=True),
        "densenet28-half": _network("densely connected, image halved at once", densenet, depth=28, is_halved=True),
        "small": _network("two convolutions, for images of a few pixels", small),
        "small-wide": _network("the same, wider", small, width=48),
        # pretrained
        "efficientnet-lite0": _efficientnet("efficientnet-lite0", 4_652_008),
        "efficientnet-lite1": _efficientnet("efficientnet-lite1", 5_416_680),
        "efficientnet-lite2": _efficientnet("efficientnet-lite2", 6_092_072),
        "minilm": Model(
            ("text",),
            "sentence vectors of all-MiniLM-L6-v2, and one hidden layer",
            encoders={"text": TextEncoder(minilm.tokenizer, minilm.network)},
            extra="minilm",
            known_parameters=22_713_216,
        ),
        "torchvision:": Model(
            ("images",),
            "features of a torchvision classifier, and one hidden layer",
            encoders={"images": ImageEncoder(torchvision.scaling, torchvision.network)},
            extra="torchvision",
        ),
        "timm:": Model(
            ("images",),
            "features of a timm model, and one hidden layer",
            encoders={"images": ImageEncoder(timm.scaling, timm.network)},
            extra="timm",
        ),
        "hf:": Model(
            ("images", "text"),
            "features of a Hugging Face model, from a folder or the hub, and one hidden layer",
            encoders=_HUGGING_FACE,
            extra="transformers",
        ),
        "hf-tune:": Model(
            ("text",),
            "a Hugging Face model, trained as a whole",
            encoders={"text": _HUGGING_FACE["text"]},
            extra="transformers",
        ),
    }
)
