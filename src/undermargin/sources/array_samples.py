"""Samples from arrays in memory: images, embeddings, sparse matrices, and lists of texts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.labels import encode_labels
from undermargin.sources.one_line import reason
from undermargin.sources.samples import Samples

HALF_BRIGHT = 128  # pixels of a whole data set that stay below are not bytes: they run to 1, or to 16 in scikit-learn
DENSE_COLUMNS, DENSE_BYTES = 4096, 1 << 29  # a sparse matrix up to this size is scanned as it is, a larger one reduced
REDUCED = 256  # numbers per sample


def from_arrays(inputs: Any, labels: Any, found: Mapping[str, Any], *, class_names: Any = None) -> Samples:
    """Samples of (samples, height, width[, channels]) images, (samples, numbers) embeddings, or texts."""
    told = dict(found)
    texts = _texts(inputs)
    if texts is None:
        inputs = _dense(inputs, told) if _is_sparse(inputs) else _array(inputs, "inputs")
        if not inputs.ndim:
            raise InputError("the inputs are a single number; expected one row per sample")
    numbers, names = _labels(labels, len(inputs if texts is None else texts), class_names)
    if texts is not None:
        return Samples("text", texts, numbers, names, None, told)
    if inputs.ndim == 2 and inputs.dtype.kind in "fiub":
        with np.errstate(over="ignore"):
            values = inputs.astype(np.float32)
        if not np.isfinite(values).all():
            raise InputError(f"{int((~np.isfinite(values)).sum())} numbers of the inputs are not finite")
        return Samples("embeddings", values, numbers, names, None, told)
    return Samples("images", _as_images(inputs), numbers, names, None, told)


def _labels(labels: Any, num_samples: int, class_names: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    labels = _array(labels, "labels")
    if labels.ndim != 1:
        raise InputError(f"labels have shape {labels.shape}; several labels per sample (multi-label) are not supported")
    if len(labels) != num_samples:
        raise InputError(f"{len(labels)} labels for {num_samples} samples; expected one per sample")
    numbers, names = encode_labels(labels.tolist(), name="the labels")
    if class_names is not None and all(name.isdecimal() for name in names) and len(class_names) > max(map(int, names)):
        names = [str(class_names[int(name)]) for name in names]
    return numbers, names


def _array(values: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, tensors on a GPU
        raise InputError(f"the {what} cannot be read as an array: {reason(error)}") from None


def _texts(inputs: Any) -> list[str] | None:
    """The inputs as texts, if they are a list, an array or a series of strings."""
    is_other = isinstance(inputs, np.ndarray) and inputs.dtype.kind not in "OUT"
    if is_other or _is_sparse(inputs) or getattr(inputs, "ndim", 1) != 1 or not hasattr(inputs, "__len__"):
        return None
    first = next((value for value in inputs if not _is_missing(value)), None)
    if not isinstance(first, str):
        return None
    return ["" if _is_missing(value) else str(value) for value in inputs]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _is_sparse(inputs: Any) -> bool:
    return type(inputs).__module__.startswith("scipy.sparse")


def _dense(matrix: Any, found: dict[str, Any]) -> npt.NDArray[np.float32]:
    """A sparse matrix (samples, columns) as embeddings: as it is if that is small, else reduced to fewer numbers."""
    num_samples, num_columns = matrix.shape
    if num_columns <= DENSE_COLUMNS and num_samples * num_columns * 4 <= DENSE_BYTES:
        return np.asarray(matrix.toarray(), np.float32)
    from sklearn.decomposition import TruncatedSVD

    size = max(1, min(REDUCED, min(matrix.shape) - 1))
    found["guessed"] = [f"inputs: {num_columns:,} sparse columns, reduced to {size} numbers per sample"]
    return np.asarray(TruncatedSVD(size, random_state=0).fit_transform(matrix), np.float32)


def _as_images(inputs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if inputs.ndim == 3:
        inputs = inputs[..., None]
    if inputs.ndim != 4 or inputs.dtype.kind not in "fiub":
        raise InputError(
            f"inputs have shape {inputs.shape} and type {inputs.dtype}; expected images (samples, height, width[, 3]), "
            "embeddings (samples, numbers) or a list of texts"
        )
    if inputs.shape[1] in (1, 3) and inputs.shape[3] not in (1, 3):
        inputs = inputs.transpose(0, 2, 3, 1)  # channels first, as in torch
    if not np.isfinite(inputs).all():
        raise InputError(f"{int((~np.isfinite(inputs)).sum())} pixels of the images are not finite")
    low, high = (float(inputs.min()), float(inputs.max())) if inputs.size else (0.0, 255.0)
    if low < 0 or high > 255:  # any range is mapped to that of bytes
        inputs = (inputs.astype(np.float32) - low) * (255 / max(high - low, 1e-30))
    elif high < HALF_BRIGHT:
        inputs = inputs.astype(np.float32) * (255 / high if high > 1 else 255)
    if inputs.dtype != np.uint8:
        inputs = inputs.round().astype(np.uint8)
    return np.ascontiguousarray(inputs)
