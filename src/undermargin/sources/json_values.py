"""What JSON lines and JSON arrays share: objects as a table, and where in the text a value stands."""

import json
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from undermargin.errors import InputError

SPACE = re.compile(r"[ \t\r\n]*")
INT64 = 2**63
MAX_DIGITS = 76  # of Arrow's largest decimal
MAX_DEPTH = 64  # of lists and objects in each other


def table_of(objects: list[Any]) -> pa.Table:
    """A table with one row per object; whole numbers beyond 64 bits become decimals, exactly."""
    for place, one in enumerate(objects, 1):
        if not isinstance(one, dict):
            raise ValueError(f"row {place} is a {type(one).__name__}; expected an object with the same keys in each")
        if any(_depth(value) > MAX_DEPTH for value in one.values() if isinstance(value, (list, dict))):
            raise ValueError(f"row {place} is nested more than {MAX_DEPTH} levels deep")
    try:
        return pa.Table.from_pylist(objects)
    except (OverflowError, pa.ArrowInvalid):
        large = {name for one in objects for name, value in one.items() if _has_large(value)}
        if not large:
            raise
        columns = {name: _fitting([one.get(name) for one in objects]) for name in large}
        return pa.Table.from_pylist(
            [one | {name: columns[name][place] for name in large} for place, one in enumerate(objects)]
        )


def _fitting(values: list[Any]) -> list[Any]:
    """The values of a column in which some number is too large for 64 bits, as values of one type that fit."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in given):
        is_short = all(len(str(abs(value))) <= MAX_DIGITS for value in given)
        convert: Any = Decimal if is_short else str
        return [None if value is None else convert(value) for value in values]
    return [_as_float(value) for value in values]


def _as_float(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_float(one) for one in value]
    if isinstance(value, dict):
        return {name: _as_float(one) for name, one in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 2**1023 else float("inf")
    return value


def _has_large(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_large, value))
    if isinstance(value, dict):
        return any(map(_has_large, value.values()))
    return isinstance(value, int) and not -INT64 <= value < INT64


def _depth(value: Any) -> int:
    """How many lists and objects are in each other; stops counting beyond MAX_DEPTH."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inside for one in values if isinstance(one, (list, dict))]
    return depth


def value_span(text: str, name: str, position: int = 0) -> tuple[int, int]:
    """Where the value of a name begins and ends in the object at `position`; the last one, if it is there twice."""
    decoder = json.JSONDecoder()
    found = None
    position = text.index("{", position) + 1
    while text[position := skip(text, position)] != "}":
        key, position = decoder.raw_decode(text, position)
        start = skip(text, skip(text, position) + 1)  # behind the colon
        _, position = decoder.raw_decode(text, start)
        if key == name:
            found = (start, position)
        position = skip(text, position)
        position += text[position] == ","
    if found is None:
        raise InputError(f"an object has no {name!r}: {text[:80]}")
    return found


def skip(text: str, position: int) -> int:
    """The position behind white space."""
    space = SPACE.match(text, position)
    return space.end() if space else position
