"""The `datasets` library of Hugging Face, which is imported only where it is needed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from undermargin.errors import InputError
from undermargin.sources.labels import Labels


def import_datasets() -> Any:
    """The library, or an error that says how to install it."""
    try:
        import datasets
    except ImportError:
        raise InputError("this needs the package datasets: pip install 'undermargin[datasets]'") from None
    return datasets


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Turn the library's progress bars off, and on again if they were on."""
    datasets = import_datasets()
    were_off = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not were_off:
            datasets.enable_progress_bars()


def image_dataset(images: Sequence[Any], labels: Labels, class_names: Sequence[str]) -> Any:
    """A data set of images: arrays, or {bytes, path}."""
    return _labeled("image", images, import_datasets().Image(), labels, class_names)


def vector_dataset(vectors: Sequence[Any], labels: Labels, class_names: Sequence[str]) -> Any:
    """A data set of embeddings."""
    datasets = import_datasets()
    return _labeled("embedding", vectors, datasets.Sequence(datasets.Value("float32")), labels, class_names)


def _labeled(name: str, values: Sequence[Any], feature: Any, labels: Labels, class_names: Sequence[str]) -> Any:
    datasets = import_datasets()
    features = datasets.Features({"label": datasets.ClassLabel(names=list(class_names)), name: feature})
    return datasets.Dataset.from_dict({"label": labels.tolist(), name: list(values)}, features=features)
