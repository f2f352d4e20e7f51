"""Python and NumPy objects from untrusted pickles: arrays, lists and texts, never code."""

import codecs
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError


def _encoded(text: str, encoding: str) -> bytes:
    """Bytes as Python 3 writes them in old pickle protocols; no other codec is needed."""
    if codecs.lookup(encoding).name != "iso8859-1":
        raise pickle.UnpicklingError(f"text in {encoding}")
    return text.encode("latin1")


def _reconstructed(*_: Any) -> npt.NDArray[np.int8]:
    """An empty array; the pickle then sets its type, shape and values."""
    return np.empty(0, np.int8)


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstructed,
    ("numpy._core.multiarray", "_reconstruct"): _reconstructed,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encoded,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which data do not need")
        return ALLOWED[module, name]


def unpickled(data: bytes, path: Path) -> dict[str, Any]:
    """The mapping in a pickle, with keys as text. Anything but data is refused, and no code is run."""
    try:
        value = _Unpickler(io.BytesIO(data), encoding="latin1").load()
    except Exception as error:  # damaged pickles raise all kinds of exceptions
        raise InputError(f"{path} cannot be read: {error or type(error).__name__}; download it again") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} holds a {type(value).__name__}, expected a mapping of names to values")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): item for key, item in value.items()}


def entry(mapping: dict[str, Any], name: str, path: Path) -> Any:
    """The value of a name in the mapping of a file."""
    if name not in mapping:
        raise InputError(f"{path} lacks {name}; it has {', '.join(mapping)}")
    return mapping[name]
