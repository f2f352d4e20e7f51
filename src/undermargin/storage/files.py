"""Files and folders that appear complete or not at all: written under a temporary name, synced, renamed.

Temporary names cannot be guessed, and are created exclusively: nothing that is there already is opened, truncated or
removed, and no link is followed. After a kill a temporary file or folder may stay; `abandoned` finds it.
"""

import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError
from undermargin.storage.locks import is_free, only_one

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.part")
MARKER = ".undermargin-part"  # in a temporary folder, and locked as long as it is being filled


def temporary(path: Path) -> Path:
    """A new name beside `path`, for what will replace it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """An empty file to write instead of `path`, and which then replaces it.

    After a crash or an error, `path` is the old file or the new one, never half of one.
    """
    path = Path(path)
    partial = temporary(path)
    os.close(os.open(partial, _CREATE, 0o666))
    try:
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


# neither flag exists on Windows, where links need a privilege
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the name `path` when it is complete.

    What killed calls left behind for the same path is removed.
    """
    for one in abandoned(path.parent, path.name):
        shutil.rmtree(one, ignore_errors=True)
    partial = temporary(path)
    partial.mkdir(parents=True)
    try:
        with only_one(partial / MARKER):
            yield partial
            with suppress(PermissionError):  # Windows removes no file that is open
                (partial / MARKER).unlink()
        (partial / MARKER).unlink(missing_ok=True)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def abandoned(folder: Path, name: str) -> list[Path]:
    """Temporary folders that killed processes left behind in `folder` for this name."""
    if not folder.is_dir():
        return []
    ours = (one for one in folder.iterdir() if (found := TEMPORARY.fullmatch(one.name)) and found["name"] == name)
    return [one for one in ours if not one.is_symlink() and (one / MARKER).is_file() and is_free(one / MARKER)]


def append_line(path: Path, value: Any) -> None:
    """Add a line to a JSON-lines file."""
    with os.fdopen(os.open(path, _APPEND, 0o666), "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; links, pipes and devices are refused, so that reading ends and stays in place."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise FolderError(f"{path} is not a regular file; undermargin follows no links inside a scan's folder")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror}") from None


def irregular(folder: Path) -> list[Path]:
    """What is neither a regular file nor a folder, in a folder and below: links, which are not followed, and pipes."""
    return [
        Path(place) / name
        for place, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if not _is_plain((Path(place) / name).lstat().st_mode)
    ]


def _is_plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
