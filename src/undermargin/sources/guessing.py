"""Guess which column of a table is what: by its name, its type and its first values."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from undermargin.errors import InputError
from undermargin.sources.columns import ID_NAMES, is_text
from undermargin.sources.labels import LABEL_OPTION
from undermargin.sources.pictures import SUFFIXES
from undermargin.sources.samples import Reading

LABEL_NAMES = ("label", "labels", "class", "target", "category", "y", "fine_label")
TEXT_NAMES = ("text", "sentence", "content", "question", "review", "document", "title", "message")
IMAGE_NAMES = ("image", "img", "picture", "photo")
WORDS_OF_PROSE = 3  # on average; with fewer words it is a name
LOOKED_AT = 1000  # rows


def check_names(table: pa.Table, reading: Reading) -> None:
    """Refuse a table whose column names are ambiguous, or that lacks a column that was named."""
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"two columns have the same name, {twice[0]!r}; rename one of them")
    for option in ("label", "text", "image", "id"):
        name = getattr(reading, option)
        if name is not None and name not in names:
            raise InputError(f"no column is called {name!r}; columns are {', '.join(names)}. Check --{option}")


def rows_where(table: pa.Table, where: str | None) -> npt.NDArray[np.int64]:
    """Numbers of the rows chosen by COLUMN=VALUE; all rows if `where` is None."""
    if where is None:
        return np.arange(len(table))
    name, equals, value = where.partition("=")
    if not equals or name not in table.column_names:
        raise InputError(f"--where {where!r} must be COLUMN=VALUE with one of {', '.join(table.column_names)}")
    try:
        texts = table[name].cast(pa.string())
    except pa.ArrowException:
        raise InputError(f"--where {where!r}: column {name!r} holds {table[name].type}, not single values") from None
    return np.flatnonzero(pc.fill_null(pc.equal(texts, value), False).to_numpy())


def label_column(table: pa.Table) -> str:
    """The column of labels, by its name."""
    lower = {name.lower(): name for name in table.column_names}
    for name in LABEL_NAMES:
        if name in lower:
            return str(lower[name])
    raise InputError(f"which column holds the labels? Columns are {', '.join(table.column_names)}; {LABEL_OPTION}")


def ids(table: pa.Table, name: str | None) -> list[str] | None:
    """The values of the column that names the samples: as asked, or the first that can; None: go by row number."""
    if name is not None:
        return _named_ids(table[name], name)
    for column in table.schema:
        if column.name.lower() in ID_NAMES and _can_name(table[column.name]):
            return [str(value) for value in table[column.name].to_pylist()]
    return None


def _named_ids(values: pa.ChunkedArray, name: str) -> list[str]:
    texts = ["" if value is None else str(value) for value in values.to_pylist()]
    repeated = len(texts) - len(set(texts))
    if values.null_count or repeated:
        raise InputError(
            f"--id {name}: {values.null_count} rows have no value and {repeated} repeat another row's; ids must be "
            "unique"
        )
    return texts


def _can_name(values: pa.ChunkedArray) -> bool:
    kind = values.type
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        return False
    try:
        return bool(pc.count_distinct(values).as_py() == len(values))
    except pa.ArrowNotImplementedError:  # an exotic type that cannot be compared
        return False


def image_column(table: pa.Table) -> str | None:
    """A column of images as Hugging Face stores them, {bytes, path}; or, by its name, of bytes or of files."""
    for column in table.schema:
        is_struct = pa.types.is_struct(column.type) and column.type.get_field_index("bytes") >= 0
        is_named = column.name.lower() in IMAGE_NAMES
        is_binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        if is_struct or (is_named and (is_binary or _names_images(table[column.name]))):
            return str(column.name)
    return None


def _names_images(column: pa.ChunkedArray) -> bool:
    first = column[0].as_py() if len(column) else None
    return isinstance(first, str) and Path(first).suffix.lower() in SUFFIXES


def text_column(table: pa.Table) -> str | None:
    """The column of prose: by its name, or the only one with several words per row."""
    strings = [column.name for column in table.schema if is_text(column.type)]
    named = [name for name in strings if name.lower() in TEXT_NAMES]
    if named:
        return str(named[0])
    prose = [name for name in strings if _words(table[name]) >= WORDS_OF_PROSE]
    return str(prose[0]) if len(prose) == 1 else None


def _words(column: pa.ChunkedArray) -> float:
    spaces = pc.mean(pc.count_substring(column.slice(0, LOOKED_AT), " ")).as_py()
    return (spaces or 0) + 1
