"""NumPy files: one array (epochs, samples, classes), read a few rows at a time."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.importers.recording import PIECE, Piece, Recording, as_labels, one_line

Array = npt.NDArray[Any]

_DAMAGE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def read_npy(path: Path, labels: Any) -> Recording:
    """An array that is mapped, not loaded."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is not a complete NumPy array: {one_line(error)}") from None
    _check(path, array.shape, array.dtype)
    pieces = (
        Piece(epoch, np.asarray(array[epoch, rows], np.float32), np.arange(rows.start, rows.stop))
        for epoch in range(len(array))
        for rows in _rows(array.shape)
    )
    return Recording(path, array.shape[1], as_labels(labels, path, num_samples=array.shape[1]), pieces)


def read_npz(path: Path, labels: Any) -> Recording:
    """An archive with `logits` or `probabilities` and, optionally, `labels`: the large one is read as a stream."""
    try:
        with zipfile.ZipFile(path) as archive:  # np.load would leave a damaged file open
            names = [member.removesuffix(".npy") for member in archive.namelist()]
            name = next((name for name in ("logits", "probabilities") if name in names), None)
            if name is None:
                raise InputError(f"{path} holds {', '.join(names)}; expected an array called logits or probabilities")
            if labels is None and "labels" in names:
                with archive.open("labels.npy") as file:
                    labels = npy.read_array(file, allow_pickle=False)
            with archive.open(f"{name}.npy") as file:
                shape, is_columns, dtype = _header(file)
    except _DAMAGE as error:
        raise error if isinstance(error, InputError) else _damaged(path, error) from None
    _check(path, shape, dtype)
    if is_columns:
        raise InputError(f"{path}: {name} is stored by columns; save np.ascontiguousarray({name}) instead")
    known = as_labels(labels, path, num_samples=shape[1])
    pieces = _stream(path, f"{name}.npy", shape, dtype)
    return Recording(path, shape[1], known, pieces, is_probabilities=True if name == "probabilities" else None)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    major, _ = npy.read_magic(file)
    shape, is_columns, dtype = (npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0)(file)
    return shape, is_columns, dtype


def _stream(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Piece]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            _header(file)
            for epoch in range(shape[0]):
                for rows in _rows(shape):
                    count = (rows.stop - rows.start) * shape[2]
                    content = file.read(count * dtype.itemsize)
                    logits = np.frombuffer(content, dtype, count).reshape(-1, shape[2])
                    yield Piece(epoch, logits.astype(np.float32), np.arange(rows.start, rows.stop))
    except _DAMAGE as error:
        raise error if isinstance(error, InputError) else _damaged(path, error) from None


def _rows(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, PIECE // shape[2])
    for start in range(0, shape[1], step):
        yield slice(start, min(start + step, shape[1]))


def _check(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 3 or dtype.kind not in "fiu" or shape[2] < 2 or not all(shape):
        raise InputError(
            f"{path}: the array has shape {shape} and type {dtype}, expected numbers of shape "
            "(epochs, samples, classes), with two or more classes"
        )


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is not a complete NumPy archive: {one_line(error)}")
