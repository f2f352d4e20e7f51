"""Arrays from .npy and .npz files whose sizes are checked before anything is read: headers may claim anything."""

import math
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.samples import Reading

LARGE = 1 << 30  # bytes; below this, a member may be compressed as much as it likes
MAX_RATIO = 100  # of unpacked to packed bytes in a large member

Array = npt.NDArray[Any]


def read_npy(path: Path, reading: Reading) -> Array:
    """The array in a file."""
    with path.open("rb") as file:
        _check_header(file, path.stat().st_size, path.name, reading)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_npz(path: Path, reading: Reading) -> Mapping[str, Callable[[], Array]]:
    """For each array of an archive, by its name: a function that reads it."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a zip archive, as .npz files are: damaged or cut off")
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
    return {name.removesuffix(".npy"): partial(_read_member, path, name, reading) for name in names}


def _read_member(path: Path, name: str, reading: Reading) -> Array:
    with zipfile.ZipFile(path) as archive:
        check_member(archive, archive.getinfo(name), reading)
        with archive.open(name) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def check_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, reading: Reading) -> None:
    """Refuse a member that would fill the memory when it is unpacked, or whose header claims more than is there."""
    check_unpacked(info, reading)
    if info.filename.endswith(".npy"):
        with archive.open(info) as file:
            _check_header(file, info.file_size, info.filename, reading)


def check_unpacked(info: zipfile.ZipInfo, reading: Reading) -> None:
    """Refuse a member of a zip file that would fill the memory when it is unpacked."""
    if info.file_size > LARGE and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise InputError(
            f"{info.filename} is {info.compress_size:,} bytes and would unpack to {info.file_size:,}; archives that "
            f"grow more than {MAX_RATIO}-fold are refused. If the data are right, save them without compression"
        )
    _check_memory(info.file_size, info.filename, reading)


def _check_header(file: IO[bytes], size: int, name: str, reading: Reading) -> None:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never run")
    claimed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if claimed > there:
        raise InputError(
            f"the header of {name} claims {claimed:,} bytes {tuple(shape)}, but {there:,} follow: it is damaged or cut "
            "off; save it again"
        )
    _check_memory(claimed, name, reading)


def _check_memory(needed: int, name: str, reading: Reading) -> None:
    if needed > (allowed := reading.allowed_bytes):
        raise InputError(
            f"{name} takes {needed:,} bytes in memory, but only {allowed:,} are allowed; pass --memory GB to allow more"
        )
