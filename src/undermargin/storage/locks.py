"""Locks between processes. A lock file is never truncated, and a process that ends lets go of its locks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from undermargin.errors import FolderError


@contextmanager
def only_one(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold this file's lock; if another process holds it, call `on_wait` and wait."""
    lock = _lock(path)
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        on_wait()
        held = lock.acquire()
    with held:
        yield


@contextmanager
def at_once(path: Path, message: str) -> Iterator[None]:
    """Hold this file's lock, or raise a FolderError with this message if another process holds it."""
    try:
        held = _lock(path).acquire(blocking=False)
    except Timeout:
        raise FolderError(message) from None
    with held:
        yield


def is_free(path: Path) -> bool:
    """Whether no process holds this file's lock."""
    try:
        with _lock(path).acquire(blocking=False):
            return True
    except (Timeout, OSError):
        return False


def _lock(path: Path) -> FileLock:
    if path.is_symlink():
        raise FolderError(f"{path} is a symbolic link; undermargin follows no links inside its folders. Delete it")
    return FileLock(path)
