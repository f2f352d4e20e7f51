"""The columns of a table as features: numbers, dates and times as seconds, categories as codes."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from undermargin.errors import InputError
from undermargin.sources.samples import Columns

ID_NAMES = ("id", "uid", "uuid", "filename", "file_name")
MAX_CATEGORIES = 1000  # a text column with more distinct values is prose, not a category
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
SECONDS_PER_DAY = 86_400


def features(table: pa.Table) -> tuple[Columns, dict[str, int]]:
    """Numeric and category columns; ids and prose are left out. Infinite cells count as missing.

    Also returns how many cells of each column were infinite, or too large for 32 bits.
    """
    numbers: dict[str, npt.NDArray[np.float32]] = {}
    codes: dict[str, Any] = {}
    categories: dict[str, list[str]] = {}
    for column in table.schema:
        values = table[column.name]
        if names_rows(column.name, values):
            continue
        if is_number(values.type) or _is_time(values.type):
            numbers[column.name] = _as_floats(values)
        elif _is_category(values.type):
            encoded = values.cast(pa.string()).combine_chunks().dictionary_encode()
            if len(encoded.dictionary) <= min(MAX_CATEGORIES, 0.5 * len(table)):
                codes[column.name] = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64) + 1
                categories[column.name] = encoded.dictionary.to_pylist()
    if not numbers and not codes:
        raise InputError(
            f"none of the columns {', '.join(table.column_names)} holds numbers or categories to learn from"
        )
    raw = np.stack(list(numbers.values()), 1) if numbers else np.empty((len(table), 0), np.float32)
    stacked = np.stack(list(codes.values()), 1) if codes else np.empty((len(table), 0), np.int64)
    infinite = np.isinf(raw)
    counts = {name: int(count) for name, count in zip(numbers, infinite.sum(0), strict=True) if count}
    finite = np.where(infinite, np.float32(np.nan), raw) if counts else raw
    return Columns(finite, stacked, list(numbers), categories, raw if counts else None), counts


def plain_types(table: pa.Table) -> pa.Table:
    """The table with views of texts and bytes as plain ones, which more of Arrow's functions take."""
    plain = {"string_view": pa.string(), "binary_view": pa.binary()}
    for position, column in enumerate(table.schema):
        values = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if (kind := plain.get(str(values))) is not None:
            texts = pa.array(table[position].to_pylist(), kind)  # Arrow cannot cast all of them itself
            table = table.set_column(position, column.with_type(kind), texts)
    return table


def names_rows(name: str, values: pa.ChunkedArray) -> bool:
    """Whether a column only identifies the row: it would tell a network where in the file a sample is."""
    if name.lower() in ID_NAMES or not name.strip() or name.startswith("Unnamed:"):
        return True
    if not pa.types.is_integer(values.type) or values.null_count or len(values) < 2:
        return False
    return bool((np.diff(values.to_numpy()) == 1).all())


def is_text(kind: pa.DataType) -> bool:
    """Whether a column's type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column's type is a number."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_time(kind: pa.DataType) -> bool:
    is_of_day = pa.types.is_time(kind) or pa.types.is_duration(kind)
    return bool(is_of_day or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_category(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_number(kind.value_type) or _is_category(kind.value_type)
    return is_text(kind) or bool(pa.types.is_boolean(kind))


def _as_floats(values: pa.ChunkedArray) -> npt.NDArray[np.float32]:
    """Numbers (rows,), NaN where missing; values beyond 32 bits become infinite."""
    if _is_time(values.type):
        values = _seconds(values)
    with np.errstate(over="ignore"):
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy().astype(np.float32))


def _seconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and timestamps as seconds since 1970, times of day and durations as seconds, fractions included."""
    kind = values.type
    if pa.types.is_date32(kind):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), SECONDS_PER_DAY)
    ticks = TICKS["ms" if pa.types.is_date64(kind) else kind.unit]
    counts = (values.cast(pa.int32()) if pa.types.is_time32(kind) else values).cast(pa.int64())
    whole = pc.divide(counts, ticks)  # apart from the rest, since nanoseconds since 1970 exceed a float's precision
    rest = pc.subtract(counts, pc.multiply(whole, ticks))
    return pc.add(whole.cast(pa.float64()), pc.divide(rest.cast(pa.float64()), float(ticks)))
