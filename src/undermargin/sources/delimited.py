"""CSV and TSV. Cleaned byte for byte: rows that stay keep theirs, and only the label of a relabeled row changes."""

import io
import re
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.csv as csv

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading, Samples
from undermargin.storage.files import replacing

TAB = "\t"
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks
NULL_SHARE = 0.2  # null bytes among the first; more than this and it is not UTF-8
LOOKED_AT = 4096  # bytes


class Csv(Rows):
    """Comma-separated values; semicolons and tabs are recognized."""

    noun: ClassVar[str] = "CSV"

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The rows of a file; one that is neither UTF-8 nor UTF-16, or has a name twice, is a ValueError."""
        splits.refuse(path, reading.split)
        data, _ = _utf8(path)
        sign = delimiter(data, path)
        # where semicolons separate cells, 0,5 may be a number: the reading that finds more such numbers is right
        readings = [_read(data, sign, point) for point in (".,"[: 1 + (sign == ";")])]
        table = max(readings, key=lambda one: sum(pa.types.is_floating(column.type) for column in one.schema))
        unread = [column.name for column in table.schema if pa.types.is_binary(column.type)]
        if unread:
            raise ValueError(f"the column {unread[0]!r} is not UTF-8; save the file in that encoding")
        return table

    @classmethod
    def make_samples(cls, table: pa.Table, path: Path, reading: Reading) -> Samples:
        """The samples of the table; a delimiter that the suffix does not promise counts as guessed."""
        samples = super().make_samples(table, path, reading)
        if path.suffix.lower() == ".csv" and (sign := delimiter(_utf8(path)[0], path)) != ",":
            samples.found["guessed"].append(f"delimiter: {'tab' if sign == TAB else sign}")
        return samples

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the rows that stay."""
        write_delimited(self.place, target, edit, str(self.label_column))


class Tsv(Csv):
    """Tab-separated values."""

    noun: ClassVar[str] = "TSV"


def delimiter(data: bytes | Path, path: Path) -> str:
    """What separates the cells: in a CSV file, the sign that its first two lines share most often."""
    if path.suffix.lower() == ".tsv":
        return TAB
    with io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as file:
        lines = list(islice((line for line in file if line.strip()), 2))
    bare = [re.sub(rb'"[^"]*"', b"", line).decode("utf-8", "replace") for line in lines]
    return max((",", ";", TAB), key=lambda sign: min((line.count(sign) for line in bare), default=0))


def _utf8(path: Path) -> tuple[bytes | Path, str]:
    """What to read as UTF-8, and the file's own encoding; a UTF-16 file is decoded into memory."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
    if start.startswith(UTF16):
        encoding = "utf-16-le" if start.startswith(UTF16[0]) else "utf-16-be"
        return path.read_bytes()[2:].decode(encoding).encode("utf-8"), encoding
    if start.count(b"\0") > NULL_SHARE * len(start):
        raise ValueError("it holds null bytes; if it is UTF-16 without a byte order mark, save it as UTF-8")
    return path, "utf-8"


def _read(data: bytes | Path, sign: str, point: str) -> pa.Table:
    parse = csv.ParseOptions(delimiter=sign, newlines_in_values=True)
    convert = csv.ConvertOptions(strings_can_be_null=True, decimal_point=point)
    source = pa.BufferReader(data) if isinstance(data, bytes) else data
    return csv.read_csv(source, parse_options=parse, convert_options=convert)


def write_delimited(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the rows of `source` that stay to `target`, in the same encoding."""
    read, encoding = _utf8(source)
    data = read if isinstance(read, bytes) else read.read_bytes()
    new = _edited(data, delimiter(read, source).encode(), edit, label)
    if encoding != "utf-8":
        new = UTF16[encoding == "utf-16-be"] + new.decode("utf-8").encode(encoding)
    with replacing(target) as partial:
        partial.write_bytes(new)


def _edited(data: bytes, sign: bytes, edit: Edit, label: str) -> bytes:
    records = _records(data, sign)
    names = [_text(data[start:end]) for start, end in _cells(records[0])]
    rows = records[1:]
    if len(rows) != len(edit.is_kept) or label not in names:
        raise InputError(f"the file now has {len(rows)} rows, the scan saw {len(edit.is_kept)}; has it changed since?")
    column = names.index(label)
    parts = [data[: records[0][-1]]]
    for number, row in enumerate(rows):
        before = records[number][-1]  # blank lines in front of a row go with it
        if not edit.is_kept[number]:
            continue
        if (other := int(edit.label_from[number])) == number:
            parts.append(data[before : row[-1]])
            continue
        start, end = _cells(row)[column]
        cell = slice(*_cells(rows[other])[column])
        parts.append(data[before:start] + data[cell] + data[end : row[-1]])
    return b"".join([*parts, data[records[-1][-1] :]])


def _cells(record: list[int]) -> list[tuple[int, int]]:
    """Where each cell of a record begins and ends, without the delimiter or line end behind it."""
    return list(zip(record[0:-1:2], record[1:-1:2], strict=True))


def _records(data: bytes, delimiter: bytes) -> list[list[int]]:
    """For each record that is not a blank line: start and end of every cell, and last the end of its line.

    Quotes count at the start of a cell only, and may hold delimiters, line ends and doubled quotes, as for the reader.
    """
    cell = re.compile(rb'(?:"[^"]*(?:""[^"]*)*")?[^%b\r\n]*(%b|\r\n|\r|\n|\Z)' % (delimiter, delimiter))
    records: list[list[int]] = []
    record: list[int] = []
    position = len(BOM) if data.startswith(BOM) else 0
    while position < len(data):
        found = cell.match(data, position)
        assert found is not None  # noqa: S101 - for the type checker: a cell may be empty
        record += (position, found.start(1))
        position = found.end()
        if found[1] != delimiter:
            if record[0] != record[-1]:
                records.append([*record, position])
            record = []
    if record:
        records.append([*record, position, position, position])  # a delimiter at the very end: one more, empty cell
    if not records:
        raise InputError("the file has no rows")
    return records


def _text(cell: bytes) -> str:
    text = cell.decode("utf-8")
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text
