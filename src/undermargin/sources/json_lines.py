"""JSON lines. Cleaned byte for byte: lines that stay keep theirs, and only the label of a relabeled line changes."""

import json
import re
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit
from undermargin.sources.json_values import table_of, value_span
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading
from undermargin.storage.files import replacing

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class JsonLines(Rows):
    """One object per line."""

    noun: ClassVar[str] = "JSON lines"

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The objects as a table."""
        splits.refuse(path, reading.split)
        # not splitlines, which also splits at characters that JSON allows in texts
        lines = path.read_text("utf-8-sig").split("\n")
        return table_of([json.loads(line) for line in lines if line.strip()])

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the lines that stay."""
        write_json_lines(self.place, target, edit, str(self.label_column))


def write_json_lines(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the lines of `source` that stay to `target`."""
    lines = [line for line in LINE.findall(source.read_bytes()) if line]
    rows = [number for number, line in enumerate(lines) if line.strip()]
    if len(rows) != len(edit.is_kept):
        raise InputError(f"{source} now has {len(rows)} rows, the scan saw {len(edit.is_kept)}; has it changed since?")
    new = lines.copy()  # new labels are read from the lines as they were
    for row, number in enumerate(rows):
        other = int(edit.label_from[row])
        if edit.is_kept[row] and other != row:
            text, theirs = lines[number].decode("utf-8"), lines[rows[other]].decode("utf-8")
            start, end = value_span(text, label)
            new[number] = (text[:start] + theirs[slice(*value_span(theirs, label))] + text[end:]).encode("utf-8")
    dropped = {rows[row] for row in range(len(rows)) if not edit.is_kept[row]}
    with replacing(target) as partial, partial.open("wb") as file:
        file.writelines(line for number, line in enumerate(new) if number not in dropped)
