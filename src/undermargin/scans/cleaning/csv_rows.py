"""CSV and TSV, byte for byte: rows that stay keep theirs, and of a relabeled row only the label's cell changes."""

import re
from pathlib import Path

from undermargin.errors import InputError
from undermargin.scans.cleaning.edit import Edit
from undermargin.sources.delimited import delimiter
from undermargin.storage.files import replacing

BOM = b"\xef\xbb\xbf"


def write_csv(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the rows that stay."""
    data = source.read_bytes()
    records = _records(data, delimiter(source).encode())
    names = [_text(data[start:end]) for start, end in _cells(records[0])]
    rows = records[1:]
    if len(rows) != len(edit.is_kept) or label not in names:
        raise InputError(f"{source} now has {len(rows)} rows, the scan saw {len(edit.is_kept)}; has it changed since?")
    column = names.index(label)
    with replacing(target) as partial, partial.open("wb") as file:
        file.write(data[: records[0][-1]])
        for number, row in enumerate(rows):
            before = records[number][-1]  # blank lines in front of a row go with it
            if not edit.is_kept[number]:
                continue
            if (other := int(edit.label_from[number])) == number:
                file.write(data[before : row[-1]])
                continue
            start, end = _cells(row)[column]
            cell = slice(*_cells(rows[other])[column])
            file.write(data[before:start] + data[cell] + data[end : row[-1]])
        file.write(data[records[-1][-1] :])


def _cells(record: list[int]) -> list[tuple[int, int]]:
    """Where each cell of a record begins and ends, without the delimiter or line end behind it."""
    return list(zip(record[0:-1:2], record[1:-1:2], strict=True))


def _records(data: bytes, delimiter: bytes) -> list[list[int]]:
    """For each record that is not a blank line: start and end of every cell, and last the end of its line.

    Quotes count at the start of a cell only, and may hold delimiters, line ends and doubled quotes, as the reader of
    the scan has it.
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
        records.append([*record, position, position, position])  # a delimiter at the very end: one more, empty
    if not records:
        raise InputError("the file has no rows")
    return records


def _text(cell: bytes) -> str:
    text = cell.decode("utf-8")
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text
