"""Names of pretrained models, and early checks that a model is available."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from undermargin.errors import ModelError
from undermargin.models.pretrained import efficientnet, huggingface, minilm, timm, torchvision
from undermargin.models.pretrained.scaling import Scaling
from undermargin.sources.samples import Kind


class Images(NamedTuple):
    """A family of image models. `prepare` is quick and raises if something is missing; `load` reads the weights."""

    prepare: Callable[[str], Scaling]
    load: Callable[[str], nn.Module]  # float (batch, 3, size, size) -> (batch, features)


class Text(NamedTuple):
    """A family of text models; `prepare` returns the tokenizer."""

    prepare: Callable[[str], Any]
    load: Callable[[str], nn.Module]  # tokens and mask (batch, tokens) -> (batch, features)


IMAGES = {
    **dict.fromkeys(efficientnet.SIZES, Images(efficientnet.scaling, efficientnet.network)),
    "torchvision:": Images(torchvision.scaling, torchvision.network),
    "timm:": Images(timm.scaling, timm.network),
    "hf:": Images(huggingface.scaling, huggingface.image_network),
}
TEXT = {
    "minilm": Text(minilm.tokenizer, minilm.network),
    "hf:": Text(huggingface.tokenizer, huggingface.text_network),
    "hf-tune:": Text(huggingface.tokenizer, huggingface.text_network),
}
FAMILIES: dict[Kind, dict[str, Images] | dict[str, Text]] = {"images": IMAGES, "text": TEXT}


def names(kind: Kind | None = None) -> list[str]:
    """The valid names; NAME stands for a name in that library, on the hub, or a folder.

    >>> names("text")
    ['minilm', 'hf:NAME', 'hf-tune:NAME']
    """
    found = [key for known, families in FAMILIES.items() if kind in (None, known) for key in families]
    return [f"{key}NAME" if key.endswith(":") else key for key in dict.fromkeys(found)]


def is_tuned(name: str) -> bool:
    """Whether the whole network is fine-tuned, instead of a small network on its features."""
    return name.startswith("hf-tune:")


def check(name: str, kind: Kind | None = None) -> None:
    """Raise `ModelError` unless the name exists, its library works, and the model accepts data of this kind."""
    family, own_name = split(name)
    kinds = [known for known, families in FAMILIES.items() if family in families]
    if not kinds or not own_name:
        raise ModelError(f"unknown model {name!r}; choose from {', '.join(names())}")
    if kind is not None and kind not in kinds:
        others = ", ".join(names(kind)) or "none"
        raise ModelError(f"{name} is a model for {' and '.join(kinds)}; models for {kind}: {others}")
    failures = [failure for known in ([kind] if kind else kinds) if (failure := _failure(name, known))]
    if len(failures) == (1 if kind else len(kinds)):
        raise failures[0]


def takes_images(name: str) -> bool:
    """Whether this is an image model that is available."""
    return split(name)[0] in IMAGES and _failure(name, "images") is None


def image_size(name: str) -> int:
    """The side in pixels of the images that this model was trained on; smaller images are scaled up, with some loss."""
    check(name, "images")
    family, own_name = split(name)
    return IMAGES[family].prepare(own_name).size


def split(name: str) -> tuple[str, str]:
    """The key of the family, and the name to pass to its functions.

    >>> split("timm:resnet18.a1_in1k"), split("minilm")
    (('timm:', 'resnet18.a1_in1k'), ('minilm', 'minilm'))
    """
    prefix, colon, rest = name.partition(":")
    return (prefix + colon, rest) if colon else (name, name)


def _failure(name: str, kind: Kind) -> ModelError | None:
    family, own_name = split(name)
    try:
        FAMILIES[kind][family].prepare(own_name)
    except ModelError as error:
        return error
    return None
