"""Arrays of images or embeddings with labels: .npz, or a pair of .npy files."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.samples import Samples, encode_labels

INPUT_NAMES = ("x", "images", "image", "data", "embeddings", "features", "inputs", "arr_0")
LABEL_NAMES = ("y", "labels", "label", "target", "targets", "arr_1")
HALF_BRIGHT = (
    128  # no bytes of a whole data set stay below: its numbers run to 1, or to something like scikit-learn's 16
)
# what NumPy, zipfile and zlib raise at a damaged archive
BROKEN = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def load_arrays(path: Path) -> Samples:
    """An .npz with inputs and labels, or an .npy with its labels beside it (NAME_labels.npy)."""
    try:
        if path.suffix == ".npy":
            labels_path = path.with_name(f"{path.stem}_labels.npy")
            if not labels_path.is_file():
                raise InputError(f"{path} needs its labels beside it, in {labels_path.name}")
            inputs, labels, names = np.load(path, allow_pickle=False), np.load(labels_path, allow_pickle=False), None
        else:
            # opened here, since NumPy forgets to close a file that is no archive
            with path.open("rb") as opened, _archive(opened) as file:
                inputs, labels = (_pick(file, names, path) for names in (INPUT_NAMES, LABEL_NAMES))
                names = file["classes"] if "classes" in file.files else None
    except InputError:
        raise
    except BROKEN as error:
        if "pickle" in str(error):
            raise InputError(f"{path} cannot be read as arrays: it holds Python objects, which are never run") from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} cannot be read as arrays: damaged or cut off ({reason}); save it again") from None
    return from_arrays(inputs, labels, {"path": str(path), "format": "arrays"}, class_names=names)


def _archive(opened: BinaryIO) -> Any:
    if not zipfile.is_zipfile(opened):
        raise ValueError("not a zip archive, as .npz files are")
    opened.seek(0)
    return np.load(opened, allow_pickle=False)


def _pick(file: Any, names: tuple[str, ...], path: Path) -> npt.NDArray[Any]:
    for name in names:
        if name in file.files:
            return np.asarray(file[name])
    raise InputError(f"{path} has the arrays {', '.join(file.files)}; expected one of {', '.join(names)}")


def from_arrays(inputs: Any, labels: Any, found: dict[str, Any], *, class_names: Any = None) -> Samples:
    """Samples from arrays in memory: (samples, height, width[, channels]) are images, (samples, numbers) embeddings."""
    inputs, labels = np.asarray(inputs), np.asarray(labels)
    if not inputs.ndim:
        raise InputError("the inputs are a single number; expected one row a sample")
    if labels.ndim != 1:
        raise InputError(f"labels have shape {labels.shape}; several labels a sample (multi-label) are not supported")
    if len(labels) != len(inputs):
        raise InputError(f"{len(labels)} labels for {len(inputs)} samples; expected one each")
    numbers, names = encode_labels(labels.tolist(), name="the labels")
    if class_names is not None and all(name.isdecimal() for name in names) and len(class_names) > max(map(int, names)):
        names = [str(class_names[int(name)]) for name in names]
    if inputs.ndim == 2 and inputs.dtype.kind in "fiub":
        values = inputs.astype(np.float32)
        if not np.isfinite(values).all():
            raise InputError(f"{int((~np.isfinite(values)).sum())} numbers of the inputs are not finite")
        return Samples("embeddings", values, numbers, names, None, found)
    return Samples("images", _as_images(inputs), numbers, names, None, found)


def _as_images(inputs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if inputs.ndim == 3:
        inputs = inputs[..., None]
    if inputs.ndim != 4 or inputs.dtype.kind not in "fiub":
        raise InputError(
            f"inputs have shape {inputs.shape} and type {inputs.dtype}; expected images (samples, height, width[, 3]) "
            "or embeddings (samples, numbers)"
        )
    if inputs.shape[1] in (1, 3) and inputs.shape[3] not in (1, 3):
        inputs = inputs.transpose(0, 2, 3, 1)  # channels first, as torch has them
    if not np.isfinite(inputs).all():
        raise InputError(f"{int((~np.isfinite(inputs)).sum())} pixels of the images are not finite")
    low, high = (float(inputs.min()), float(inputs.max())) if inputs.size else (0.0, 255.0)
    if low < 0 or high > 255:  # whatever range they have, it becomes that of bytes
        inputs = (inputs.astype(np.float32) - low) * (255 / max(high - low, 1e-30))
    elif high < HALF_BRIGHT:
        inputs = inputs.astype(np.float32) * (255 / high if high > 1 else 255)
    if inputs.dtype != np.uint8:
        inputs = inputs.round().astype(np.uint8)
    return np.ascontiguousarray(inputs)
