"""Folders, tar and zip files behind one interface: the names of files, and their bytes on request."""

import os
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from undermargin.errors import InputError


class Archive(Protocol):
    """Files by name."""

    @property
    def names(self) -> Iterable[str]:
        """Names of all files, with slashes, in alphabetical order."""

    def read(self, name: str) -> bytes:
        """The bytes of a file."""


class Folder:
    """Files below a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of all files."""
        names = []
        for folder, _, files in os.walk(self.path, followlinks=True):
            inside = Path(folder).relative_to(self.path).as_posix()
            names += files if inside == "." else [f"{inside}/{name}" for name in files]
        return sorted(names)

    def read(self, name: str) -> bytes:
        """The bytes of a file; a name that leads out of the folder is refused."""
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise InputError(f"{name} is not below {self.path}")
        return (self.path / name).read_bytes()


class Tar:
    """An uncompressed tar file, read from any thread and never unpacked.

    Tar files inside it are opened, too: a file in `n01440764.tar` is called `n01440764/NAME`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, tuple[int, int]] = {}  # name -> offset, bytes
        self.file = path.open("rb", buffering=0)
        self.lock = threading.Lock()  # another thread must not move the position between seek and read
        with path.open("rb") as file:
            try:
                with tarfile.open(fileobj=file, mode="r:") as outer:
                    self._index(outer, "", 0)
            except tarfile.TarError as error:
                raise InputError(f"{path} cannot be read as a tar file: {error}; download it again") from None
        self.names = sorted(self.places)

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def _index(self, tar: tarfile.TarFile, prefix: str, start: int) -> None:
        for member in tar:
            if member.isfile() and member.name.endswith(".tar"):
                with tarfile.open(fileobj=tar.extractfile(member), mode="r:") as inner:
                    self._index(inner, f"{prefix}{member.name.removesuffix('.tar')}/", start + member.offset_data)
            elif member.isfile():
                self.places[prefix + member.name.removeprefix("./")] = (start + member.offset_data, member.size)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        if name not in self.places:
            raise InputError(f"{self.path} lacks {name}; download it again")
        offset, size = self.places[name]
        with self.lock:
            self.file.seek(offset)
            data = self.file.read(size) or b""
        if len(data) != size:
            raise InputError(f"{self.path} ends inside of {name}; was it cut off?")
        return data


class Zip:
    """A zip file, never unpacked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise InputError(f"{path} cannot be read as a zip file: {error}; download it again") from None
        self.names = sorted(name for name in self.file.namelist() if not name.endswith("/"))

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        try:
            return self.file.read(name)
        except KeyError:
            raise InputError(f"{self.path} lacks {name}; download it again") from None
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InputError(f"{name} in {self.path} is damaged: {error}; download it again") from None


def open_archive(path: Path) -> Archive:
    """The folder or archive at `path`."""
    if path.is_dir():
        return Folder(path)
    return Zip(path) if path.suffix == ".zip" else Tar(path)


@dataclass(frozen=True)
class Members:
    """Some files of an archive, as `Files`."""

    archive: Archive
    ids: Sequence[str]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        return self.archive.read(self.ids[index])


def read_members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The files with these base names, from a folder or a compressed tar file, which is read once."""
    found: dict[str, bytes] = {}
    if path.is_dir():
        found = {name: (path / name).read_bytes() for name in names if (path / name).is_file()}
    else:
        try:
            with tarfile.open(path) as tar:
                for member in tar:
                    name = Path(member.name).name
                    if name in names and (file := tar.extractfile(member)):
                        found[name] = file.read()
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            why = "; ".join(str(error).splitlines())
            raise InputError(f"{path} cannot be unpacked: {why}; download it again") from None
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}; download it again")
    return found
