"""A JSON file with one array of objects. Cleaned so that what stays keeps its text."""

import json
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit
from undermargin.sources.json_values import skip, table_of, value_span
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading
from undermargin.storage.files import replacing


class JsonArray(Rows):
    """[{...}, {...}]: one object per sample."""

    noun: ClassVar[str] = "JSON"

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The objects as a table."""
        splits.refuse(path, reading.split)
        value = json.loads(path.read_text("utf-8-sig"))
        if not isinstance(value, list):
            raise ValueError(f"it holds a {type(value).__name__}; expected an array of objects, [{{...}}, {{...}}]")
        return table_of(value)

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the objects that stay, with what stood between them."""
        text, label = self.place.read_bytes().decode("utf-8"), str(self.label_column)
        spans = _spans(text)
        if len(spans) != len(edit.is_kept):
            raise InputError(f"{self.path} now has {len(spans)} objects, the scan saw {len(edit.is_kept)}")
        parts: list[str] = []
        for row, (start, end) in enumerate(spans):
            if not edit.is_kept[row]:
                continue
            before = text[spans[row - 1][1] : start] if parts else ""
            other = int(edit.label_from[row])
            cell = value_span(text, label, start)
            new = text[slice(*value_span(text, label, spans[other][0]))]
            parts.append(before + text[start : cell[0]] + new + text[cell[1] : end])
        with replacing(target) as partial:
            partial.write_bytes((text[: spans[0][0]] + "".join(parts) + text[spans[-1][1] :]).encode("utf-8"))


def _spans(text: str) -> list[tuple[int, int]]:
    """Where each element of the array begins and ends."""
    decoder, spans = json.JSONDecoder(), []
    position = skip(text, text.index("[") + 1)
    while text[position] != "]":
        _, end = decoder.raw_decode(text, position)
        spans.append((position, end))
        position = skip(text, end)
        position = skip(text, position + (text[position] == ","))
    return spans
