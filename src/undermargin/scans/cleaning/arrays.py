"""Arrays: .npz, of which all other members are kept, and .npy with its labels beside it."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.cleaning.edit import Edit
from undermargin.sources.arrays import LABEL_NAMES
from undermargin.storage.files import replacing


def write_arrays(source: Path, target: Path, edit: Edit, _: str) -> None:
    """Write the samples that stay. An array with as many rows as there are samples has one a sample."""
    if source.suffix.lower() == ".npy":
        _write_pair(source, target, edit)
    else:
        _write_archive(source, target, edit)


def labels_beside(path: Path) -> Path:
    """Where the labels of an .npy file are."""
    return path.with_name(f"{path.stem}_labels.npy")


def _write_pair(source: Path, target: Path, edit: Edit) -> None:
    labels = np.load(labels_beside(source), allow_pickle=False)
    inputs = np.load(source, allow_pickle=False, mmap_mode="r")
    with replacing(labels_beside(target)) as partial, partial.open("wb") as file:
        np.save(file, labels[edit.label_from][edit.is_kept])
    with replacing(target) as partial, partial.open("wb") as file:  # last: who finds it finds its labels too
        np.save(file, inputs[edit.is_kept])


def _write_archive(source: Path, target: Path, edit: Edit) -> None:
    num_samples = len(edit.is_kept)
    with zipfile.ZipFile(source) as old, replacing(target) as partial, zipfile.ZipFile(partial, "w") as new:
        names = [Path(info.filename).stem for info in old.infolist()]
        label = next(name for name in LABEL_NAMES if name in names)
        for info, name in zip(old.infolist(), names, strict=True):
            data = old.read(info)
            array = _array(data, name)
            if array.ndim and len(array) == num_samples:
                array = array[edit.label_from] if name == label else array
                data = _bytes(array[edit.is_kept])
            new.writestr(info.filename, data, compress_type=info.compress_type)


def _array(data: bytes, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
    except ValueError as error:
        raise InputError(
            f"the array {name} cannot be read ({error}); take it out of the file, it is never run"
        ) from None


def _bytes(array: npt.NDArray[Any]) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=False)
    return data.getvalue()
