"""Tensors in safetensors files, with a checksum that is verified when they are loaded."""

import ctypes
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError
from undermargin.storage.files import replacing

ABOUT, DIGEST = "undermargin", "sha256"  # entries of the file's metadata


def save_tensors(path: str | Path, tensors: Mapping[str, Any], *, about: str = "{}") -> None:
    """Write tensors as safetensors, with a JSON text about them in the file's metadata."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with replacing(path) as partial:
        try:
            save_file(whole, partial, metadata={ABOUT: about, DIGEST: _digest(whole, about)})
        except SafetensorError as error:  # a full disk, say
            raise FolderError(f"{path} cannot be written: {error}") from None


def load_tensors(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """What `save_tensors` wrote: the text about them, read as JSON, and the tensors.

    Files of version 0.1 have no checksum and are loaded without.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
            text = metadata[ABOUT]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            about = json.loads(text)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a file that undermargin saved: {error}") from None
    if DIGEST in metadata and metadata[DIGEST] != _digest(tensors, text):
        raise InputError(f"{path} is damaged: its contents do not match its checksum. Delete it to start again")
    return about, tensors


def _digest(tensors: Mapping[str, Any], about: str) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        if tensor.nbytes:  # the bytes as they lie in memory: NumPy does not know all of torch's types
            digest.update((ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr()))
    return digest.hexdigest()
