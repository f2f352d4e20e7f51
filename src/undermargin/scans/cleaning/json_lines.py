"""JSON lines, byte for byte: lines that stay keep theirs, and of a relabeled line only the label's value changes."""

import json
import re
from pathlib import Path

from undermargin.errors import InputError
from undermargin.scans.cleaning.edit import Edit
from undermargin.storage.files import replacing

SPACE = re.compile(r"[ \t\r\n]*")
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def write_json_lines(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the lines that stay."""
    lines = [line for line in LINE.findall(source.read_bytes()) if line]
    rows = [number for number, line in enumerate(lines) if line.strip()]
    if len(rows) != len(edit.is_kept):
        raise InputError(f"{source} now has {len(rows)} rows, the scan saw {len(edit.is_kept)}; has it changed since?")
    new = lines.copy()  # the labels to take are read from the lines as they were
    for row, number in enumerate(rows):
        other = int(edit.label_from[row])
        if edit.is_kept[row] and other != row:
            text, theirs = lines[number].decode("utf-8"), lines[rows[other]].decode("utf-8")
            start, end = _span(text, label)
            new[number] = (text[:start] + theirs[slice(*_span(theirs, label))] + text[end:]).encode("utf-8")
    dropped = {rows[row] for row in range(len(rows)) if not edit.is_kept[row]}
    with replacing(target) as partial, partial.open("wb") as file:
        file.writelines(line for number, line in enumerate(new) if number not in dropped)


def _span(line: str, name: str) -> tuple[int, int]:
    """Where the value of a name begins and ends in an object; the last, if it is there twice."""
    decoder = json.JSONDecoder()
    found = None
    position = _skip(line, 0) + 1  # behind the brace
    while line[position := _skip(line, position)] != "}":
        key, position = decoder.raw_decode(line, position)
        start = _skip(line, _skip(line, position) + 1)  # behind the colon
        _, position = decoder.raw_decode(line, start)
        if key == name:
            found = (start, position)
        position = _skip(line, position)
        position += line[position] == ","
    if found is None:
        raise InputError(f"a line has no {name!r}: {line[:80]}")
    return found


def _skip(line: str, position: int) -> int:
    space = SPACE.match(line, position)
    return space.end() if space else position
