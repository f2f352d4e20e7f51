"""Which pretrained models there are, and whether one can be had, before any time is spent."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from undermargin.errors import ModelError
from undermargin.models.pretrained import efficientnet, huggingface, minilm, timm, torchvision
from undermargin.models.pretrained.scaling import Scaling
from undermargin.sources.samples import Kind


class Images(NamedTuple):
    """How a family's networks for images are prepared, which is quick and finds what is missing, and loaded."""

    prepare: Callable[[str], Scaling]
    load: Callable[[str], nn.Module]  # float (batch, 3, size, size) -> (batch, numbers)


class Text(NamedTuple):
    """The same for text, which is prepared by a tokenizer."""

    prepare: Callable[[str], Any]
    load: Callable[[str], nn.Module]  # tokens and their mask (batch, tokens) -> (batch, numbers)


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
    """What a model may be called; behind a colon comes the library's own name, a hub's name or a folder.

    >>> names("text")
    ['minilm', 'hf:NAME', 'hf-tune:NAME']
    """
    found = [key for known, families in FAMILIES.items() if kind in (None, known) for key in families]
    return [f"{key}NAME" if key.endswith(":") else key for key in dict.fromkeys(found)]


def is_tuned(name: str) -> bool:
    """Whether the whole network is trained on the data, and not a small one on its features."""
    return name.startswith("hf-tune:")


def check(name: str, kind: Kind | None = None) -> None:
    """Raise unless there is a model of this name, its library works, and it takes data of this kind."""
    family, own_name = split(name)
    kinds = [known for known, families in FAMILIES.items() if family in families]
    if not kinds or not own_name:
        raise ModelError(f"there is no model {name!r}; there are {', '.join(names())}")
    if kind is not None and kind not in kinds:
        others = ", ".join(names(kind)) or "none"
        raise ModelError(f"{name} is a model of {' and '.join(kinds)}; those for {kind}: {others}")
    failures = [failure for known in ([kind] if kind else kinds) if (failure := _failure(name, known))]
    if len(failures) == (1 if kind else len(kinds)):
        raise failures[0]


def takes_images(name: str) -> bool:
    """Whether it is a model of images that can be had."""
    return split(name)[0] in IMAGES and _failure(name, "images") is None


def image_size(name: str) -> int:
    """The side, in pixels, of the images this model was trained on: smaller ones are scaled up and tell it less."""
    check(name, "images")
    family, own_name = split(name)
    return IMAGES[family].prepare(own_name).size


def split(name: str) -> tuple[str, str]:
    """The family's key, and the name its functions take.

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
