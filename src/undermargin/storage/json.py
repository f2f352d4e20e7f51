"""JSON that every reader accepts: NumPy values become Python's, and what is not finite becomes null."""

import json
import math
from typing import Any


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON text.

    >>> to_json({"cutoff": float("inf"), "counts": (1, 2)}, indent=None)
    '{"cutoff": null, "counts": [1, 2]}'
    """
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """The value as it comes back from a JSON file."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
