"""Names of models, and early checks that a model is available."""

from undermargin.errors import ModelError
from undermargin.models.table import MODELS, ImageEncoder, Model, TextEncoder
from undermargin.sources.samples import Kind


def names(kind: Kind | None = None) -> list[str]:
    """The valid names; NAME stands for a name in that library, on the hub, or a folder.

    >>> names("text")
    ['latent', 'minilm', 'hf:NAME', 'hf-tune:NAME']
    """
    return [shown(name) for name, row in MODELS.items() if kind is None or kind in row.kinds]


def shown(name: str) -> str:
    """The name of a row, as users write it.

    >>> shown("timm:"), shown("minilm")
    ('timm:NAME', 'minilm')
    """
    return f"{name}NAME" if name.endswith(":") else name


def default(kind: Kind) -> str:
    """The model that is trained if none is named.

    >>> default("images"), default("table")
    ('resnet8-fast', 'network')
    """
    return next(name for name, row in MODELS.items() if kind in row.kinds)


def row(name: str) -> Model:
    """A model's row; raises if there is none."""
    family, own_name = split(name)
    if family not in MODELS or not own_name:
        raise ModelError(f"unknown model {name!r}; choose from {', '.join(names())}")
    return MODELS[family]


def check(name: str, kind: Kind | None = None) -> None:
    """Raise `ModelError` unless the name exists, its library works, and the model accepts data of this kind."""
    kinds = row(name).kinds
    if kind is not None and kind not in kinds:
        raise ModelError(f"{name} is a model for {' and '.join(kinds)}; models for {kind}: {', '.join(names(kind))}")
    failures = [failure for known in ((kind,) if kind else kinds) if (failure := _failure(name, known))]
    if len(failures) == (1 if kind else len(kinds)):
        raise failures[0]


def is_pretrained(name: str) -> bool:
    """Whether this model comes with weights."""
    return bool(row(name).encoders)


def is_tuned(name: str) -> bool:
    """Whether the whole network is fine-tuned, instead of a small network on its features."""
    return name.startswith("hf-tune:")


def encoder(name: str, kind: Kind) -> tuple[ImageEncoder | TextEncoder, str]:
    """The encoder of a pretrained model for this kind of data, and the name to pass to its functions."""
    check(name, kind)
    return row(name).encoders[kind], split(name)[1]


def takes_images(name: str) -> bool:
    """Whether this is a pretrained image model that is available."""
    return "images" in row(name).encoders and _failure(name, "images") is None


def image_size(name: str) -> int:
    """The side in pixels of the images that this model was trained on; smaller images are scaled up, with some loss."""
    found, own_name = encoder(name, "images")
    size: int = found.prepare(own_name).size
    return size


def split(name: str) -> tuple[str, str]:
    """The name of the row, and the name to pass to its functions.

    >>> split("timm:resnet18.a1_in1k"), split("minilm")
    (('timm:', 'resnet18.a1_in1k'), ('minilm', 'minilm'))
    """
    prefix, colon, rest = name.partition(":")
    return (prefix + colon, rest) if colon else (name, name)


def _failure(name: str, kind: Kind) -> ModelError | None:
    encoders = row(name).encoders
    if not encoders:
        return None
    try:
        encoders[kind].prepare(split(name)[1])
    except ModelError as error:
        return error
    return None
