"""The networks of the paper, by name: each is made from a number of outputs and the shape of the images.

They take numbers (batch, channels, height, width); `images.Standardised` makes these of bytes.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Protocol

from torch import nn

from undermargin.models.densenet import densenet
from undermargin.models.lenet import lenet, lenet5, lenet_cifar
from undermargin.models.photo_resnet import photo_resnet
from undermargin.models.resnet import small_resnet
from undermargin.models.small import small_cnn
from undermargin.models.vgg import vgg
from undermargin.models.wide_resnet import wide_resnet


class MakeNetwork(Protocol):
    """A row of NETWORKS; channels and side default to those of the images that the network is known for."""

    def __call__(self, num_outputs: int, *, channels: int = ..., side: int = ...) -> nn.Module:
        """A network with fresh weights, for images of this side in pixels."""


def small(num_outputs: int, *, channels: int = 1, side: int = 8, width: int = 32) -> nn.Module:  # noqa: ARG001
    """For images of a few pixels, of any side."""
    return small_cnn(num_outputs, channels=channels, width=width)


NETWORKS: Mapping[str, MakeNetwork] = MappingProxyType(
    {
        # on a laptop: the first convolution halves the image
        "resnet8-half": partial(small_resnet, depth=8, is_halved=True),
        "resnet14-half": partial(small_resnet, depth=14, is_halved=True),
        "resnet32-half": partial(small_resnet, depth=32, is_halved=True),
        "densenet22-half": partial(densenet, depth=22, is_halved=True),
        "densenet28-half": partial(densenet, depth=28, is_halved=True),
        "resnet20": partial(small_resnet, depth=20),
        "resnet32": partial(small_resnet, depth=32),
        "resnet44": partial(small_resnet, depth=44),
        "resnet56": partial(small_resnet, depth=56),
        "resnet110": partial(small_resnet, depth=110),
        "resnet18": partial(photo_resnet, depth=18),
        "resnet34": partial(photo_resnet, depth=34),
        "resnet50": partial(photo_resnet, depth=50),
        "densenet40": partial(densenet, depth=40),
        "densenet64": partial(densenet, depth=64),
        "densenet100": partial(densenet, depth=100),
        "small": small,
        "small-wide": partial(small, width=48),
        "lenet": lenet,
        "lenet5": lenet5,
        "lenet-cifar": lenet_cifar,
        "vgg11": partial(vgg, depth=11),
        "vgg13": partial(vgg, depth=13),
        "vgg16": partial(vgg, depth=16),
        "vgg19": partial(vgg, depth=19),
        "wrn28-10": partial(wide_resnet, depth=28, widening=10),
    }
)
