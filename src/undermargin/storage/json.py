"""JSON that every reader takes: NumPy's numbers as Python's, and null for what is not finite."""

import json
import math
from typing import Any


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """The text of a value.

    >>> to_json({"cutoff": float("inf"), "counts": (1, 2)}, indent=None)
    '{"cutoff": null, "counts": [1, 2]}'
    """
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
