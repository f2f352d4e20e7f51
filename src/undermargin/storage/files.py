"""Files that appear whole or not at all: written under another name, synced, renamed."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Where to write instead; after a crash or an error there is the old file or the new one, never half of one."""
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def only_one(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait until no other process holds this file's lock, and hold it; a killed process lets go of its own."""
    import fcntl

    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def append_line(path: Path, value: Any) -> None:
    """Add a line to a JSON-lines file."""
    with path.open("a") as file:
        file.write(json.dumps(value) + "\n")


def load_tensors(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """What `save_tensors` wrote: the text about them, read as JSON, and the tensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["undermargin"])
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not hold what was saved here: {error}") from None


def save_tensors(path: str | Path, tensors: Mapping[str, Any], *, about: str = "{}") -> None:
    """Write tensors as safetensors, with a text about them in the file's metadata."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with replacing(path) as partial:
        try:
            save_file(whole, partial, metadata={"undermargin": about})
        except SafetensorError as error:  # a full disk, say
            raise FolderError(f"{path} cannot be written: {error}") from None


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """A folder to fill instead, which takes its name when it is whole; what a kill left behind is cleared away."""
    partial = path.with_name(path.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
