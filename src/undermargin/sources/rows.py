"""Data sets with one row a sample: CSV, TSV, JSON lines and Parquet, with texts, images or plain columns."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.sources.delimited import TAB, delimiter, read_delimited
from undermargin.sources.pictures import LOOKED_AT, SUFFIXES, choose_size, shorter_side
from undermargin.sources.pixels import decode_all
from undermargin.sources.samples import Columns, Reading, Samples, encode_labels

FORMATS = {".csv": "CSV", ".tsv": "TSV", ".jsonl": "JSON lines", ".ndjson": "JSON lines", ".parquet": "Parquet"}
LABEL_NAMES = ("label", "labels", "class", "target", "category", "y", "fine_label")
TEXT_NAMES = ("text", "sentence", "content", "question", "review", "document", "title", "message")
IMAGE_NAMES = ("image", "img", "picture", "photo")
ID_NAMES = ("id", "uid", "uuid", "filename", "file_name")
MAX_CATEGORIES = 1000  # a text column with more different values is prose, not a category
WORDS_OF_PROSE = 3  # on average; fewer and it is a name


def load_rows(path: Path, reading: Reading) -> Samples:
    """Read a file of rows; columns that were not named are guessed where that is obvious, and it is said so."""
    samples = from_table(read_table(path), reading, {"path": str(path), "format": FORMATS[path.suffix.lower()]})
    if path.suffix.lower() == ".csv" and (sign := delimiter(path)) != ",":
        samples.found["guessed"].append(f"delimiter: {'tab' if sign == TAB else sign}")
    return samples


def from_table(table: pa.Table, reading: Reading, found: dict[str, Any]) -> Samples:
    """Samples of a table in memory."""
    label, text, image, where = reading.label, reading.text, reading.image, reading.where
    for name in (label, text, image):
        if name is not None and name not in table.column_names:
            raise InputError(f"there is no column {name!r}; there are {', '.join(table.column_names)}")
    rows = rows_where(table, where)
    table = table.take(rows) if where else table
    if not len(table):
        raise InputError(f"{found.get('path', 'the table')} has no rows{f' where {where}' if where else ''}")
    label_column = label or _guess(table, LABEL_NAMES, "label")
    labels, class_names = encode_labels(table[label_column].to_pylist(), name=f"the labels in column {label_column!r}")
    found |= {"label": label_column, "guessed": [] if label else [f"label: {label_column}"], "where": where}
    rest = table.drop_columns([label_column, *([where.partition("=")[0]] if where else [])])
    ids = _ids(rest)
    image_column = image or _image_column(rest)
    if image_column and text is None:
        found |= {"image": image_column}
        return _images(rest[image_column], labels, class_names, ids, found, reading)
    text_column = text or _text_column(rest)
    if text_column:
        found["text"] = text_column
        found["guessed"] += [] if text else [f"text: {text_column}"]
        texts = ["" if value is None else str(value) for value in rest[text_column].to_pylist()]
        return Samples("text", texts, labels, class_names, ids, found)
    columns = _columns(rest)
    used = [*columns.number_names, *columns.categories]
    return Samples("table", columns, labels, class_names, ids, found | {"columns": used})


def read_table(path: Path) -> pa.Table:
    """The rows of a file; whatever is wrong with it becomes one line."""
    suffix = path.suffix.lower()
    try:
        table = _read(path, suffix)
        _ = table.column_names  # names that are no text show here
    except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as {FORMATS[suffix]}: {' '.join(str(error).split())[:300]}") from None
    return table


def _read(path: Path, suffix: str) -> pa.Table:
    if suffix == ".parquet":
        return pq.read_table(path)
    if suffix in (".jsonl", ".ndjson"):
        lines = path.read_text("utf-8").split("\n")  # splitlines would also split at signs that JSON allows in texts
        return pa.Table.from_pylist([json.loads(line) for line in lines if line.strip()])
    return read_delimited(path)


def rows_where(table: pa.Table, where: str | None) -> npt.NDArray[np.int64]:
    """Numbers of the rows that COLUMN=VALUE chooses; all of them without it."""
    if where is None:
        return np.arange(len(table))
    name, equals, value = where.partition("=")
    if not equals or name not in table.column_names:
        raise InputError(f"where={where!r} must be COLUMN=VALUE with one of {', '.join(table.column_names)}")
    return np.flatnonzero(pc.fill_null(pc.equal(table[name].cast(pa.string()), value), False).to_numpy())


def image_bytes(value: Any, root: Path | None) -> bytes:
    """An image's file, from {bytes, path} as Hugging Face stores it, from bytes, or from a path below `root`."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str) and root is not None:
        file = (root / value).resolve()
        if not file.is_relative_to(root.resolve()):
            raise InputError(f"the image {value} is not below {root}")
        try:
            return file.read_bytes()
        except OSError as error:
            raise InputError(f"the image {value} cannot be read: {error.strerror}") from None
    return value if isinstance(value, bytes) else b""


def _guess(table: pa.Table, names: tuple[str, ...], what: str) -> str:
    lower = {name.lower(): name for name in table.column_names}
    for name in names:
        if name in lower:
            return str(lower[name])
    raise InputError(f"which column is the {what}? Name it; there are {', '.join(table.column_names)}")


def _ids(table: pa.Table) -> list[str] | None:
    """A column that names the samples, if there is one; else rows go by their number."""
    for name in table.column_names:
        if name.lower() in ID_NAMES and pc.count_distinct(table[name]).as_py() == len(table):
            return [str(value) for value in table[name].to_pylist()]
    return None


def _image_column(table: pa.Table) -> str | None:
    """A column of images as Hugging Face stores them, {bytes, path}; or, by its name, of bytes or of files."""
    for column in table.schema:
        is_struct = pa.types.is_struct(column.type) and column.type.get_field_index("bytes") >= 0
        is_named = column.name.lower() in IMAGE_NAMES
        if is_struct or (is_named and (pa.types.is_binary(column.type) or _names_images(table[column.name]))):
            return str(column.name)
    return None


def _names_images(column: pa.ChunkedArray) -> bool:
    first = column[0].as_py() if len(column) else None
    return isinstance(first, str) and Path(first).suffix.lower() in SUFFIXES


def _text_column(table: pa.Table) -> str | None:
    """The column of prose: by its name, or the only one with several words a row."""
    strings = [column.name for column in table.schema if _is_text(column.type)]
    named = [name for name in strings if name.lower() in TEXT_NAMES]
    if named:
        return str(named[0])
    prose = [name for name in strings if _words(table[name]) >= WORDS_OF_PROSE]
    return str(prose[0]) if len(prose) == 1 else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _words(column: pa.ChunkedArray) -> float:
    spaces = pc.mean(pc.count_substring(column.slice(0, 1000), " ")).as_py()
    return (spaces or 0) + 1


def _images(
    column: pa.ChunkedArray, labels: Any, class_names: list[str], ids: Any, found: dict[str, Any], reading: Reading
) -> Samples:
    root = Path(found["path"]).parent if "path" in found else None
    total = len(column)
    if (size := reading.image_size) is None:
        some = [column[row].as_py() for row in range(0, total, max(1, total // LOOKED_AT))]
        size = choose_size([side for value in some if (side := shorter_side(_bytes_or_none(value, root)))])
    names = ids or [str(row) for row in range(total)]
    reads = ((name, partial(_value_bytes, value, root)) for name, value in zip(names, column, strict=True))
    images, kept, skipped = decode_all(reads, total, size, reading)
    found |= {"image_size": size, "skipped_rows": sorted(set(range(total)) - set(kept))}
    kept_names = [names[row] for row in kept] if ids or skipped else None
    return Samples("images", images, labels[kept], class_names, kept_names, found, skipped)


def _value_bytes(value: pa.Scalar, root: Path | None) -> bytes:
    return image_bytes(value.as_py(), root)


def _bytes_or_none(value: Any, root: Path | None) -> bytes:
    try:
        return image_bytes(value, root)
    except InputError:
        return b""


def _names_rows(name: str, values: pa.ChunkedArray) -> bool:
    """Whether a column only says which row it is: it would tell a network where in the file a sample stands."""
    if name.lower() in ID_NAMES or not name.strip() or name.startswith("Unnamed:"):
        return True
    if not pa.types.is_integer(values.type) or values.null_count or len(values) < 2:
        return False
    numbers = values.to_numpy()
    return bool((np.diff(numbers) == 1).all())


def _columns(table: pa.Table) -> Columns:
    """Numbers as they are, dates as seconds, strings and booleans as categories; ids and prose are left out."""
    numbers: dict[str, Any] = {}
    codes: dict[str, Any] = {}
    categories: dict[str, list[str]] = {}
    for column in table.schema:
        values = table[column.name]
        if _names_rows(column.name, values):
            continue
        if pa.types.is_temporal(column.type):
            values = values.cast(pa.timestamp("s")).cast(pa.int64())
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
            numbers[column.name] = values.cast(pa.float64(), safe=False).to_numpy().astype(np.float32)
        elif _is_text(values.type) or pa.types.is_boolean(values.type) or pa.types.is_dictionary(values.type):
            encoded = values.cast(pa.string()).combine_chunks().dictionary_encode()
            if len(encoded.dictionary) <= min(MAX_CATEGORIES, 0.5 * len(table)):
                codes[column.name] = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64) + 1
                categories[column.name] = encoded.dictionary.to_pylist()
    if not numbers and not codes:
        raise InputError(
            f"none of the columns {', '.join(table.column_names)} holds numbers or categories to learn from"
        )
    empty = np.empty((len(table), 0))
    return Columns(
        np.stack(list(numbers.values()), 1) if numbers else empty.astype(np.float32),
        np.stack(list(codes.values()), 1) if codes else empty.astype(np.int64),
        list(numbers),
        categories,
    )
