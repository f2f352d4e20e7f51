"""Samples as the review page shows them: plain data, every value a short text or a number."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from undermargin.review.selection import neighbours
from undermargin.scans.decisions import Entry
from undermargin.sources.base import Source
from undermargin.verdicts.record import Verdicts

EXCERPT = 360  # characters of a text in the grid
LONGEST = 100_000  # characters of a text shown alone
CELL = 200  # characters of a cell
NUM_CELLS = 6  # cells in the grid


class Cards:
    """What the page shows of samples, from the verdicts and the data set."""

    def __init__(self, verdicts: Verdicts, originals: Source) -> None:
        self.verdicts = verdicts
        self.originals = originals

    def short(self, indices: Iterable[int], entries: Mapping[int, Entry]) -> list[dict[str, Any]]:
        """Excerpts for the grid, one per index."""
        return [
            self._verdict(index) | standing(entries.get(index, Entry())) | self._look(index, is_short=True)
            for index in indices
        ]

    def whole(self, index: int) -> dict[str, Any]:
        """One sample in full, and some kept samples to compare it with."""
        return {"index": index} | self._look(index, is_short=False) | {"neighbours": self._neighbours(index)}

    def _neighbours(self, index: int) -> list[dict[str, Any]]:
        """Kept samples of its label, and of the label that is suggested instead."""
        both = [
            int(labels[index])
            for labels in (self.verdicts.labels, self.verdicts.suggested_labels)
            if labels is not None and labels[index] >= 0
        ]
        groups = []
        for label in dict.fromkeys(both):
            found = [
                {"index": one} | self._look(one, is_short=True) for one in neighbours(self.verdicts, label, of=index)
            ]
            groups.append({"label": self.verdicts.name(label), "samples": found})
        return groups

    def _verdict(self, index: int) -> dict[str, Any]:
        verdicts = self.verdicts
        label, suggested = (
            None if labels is None or labels[index] < 0 else verdicts.name(int(labels[index]))
            for labels in (verdicts.labels, verdicts.suggested_labels)
        )
        has_other = suggested is not None and suggested != label
        confidence = verdicts.suggestion_confidence
        return {
            "index": int(index),
            "id": self.originals.ids[index],
            "label": label,
            "suggested": suggested if has_other else None,
            "confidence": float(confidence[index]) if has_other and confidence is not None else None,
            "score": float(verdicts.scores[index]),
            "verdict": verdicts[index],
        }

    def _look(self, index: int, *, is_short: bool) -> dict[str, Any]:
        """The text, and the cells of the row; images are requested separately."""
        source = self.originals
        if not source.is_there:
            return {}
        look: dict[str, Any] = {}
        if source.has_rows:
            cells = [[name, cell(value)] for name, value in source.cells(index).items()]
            look["cells"] = cells[:NUM_CELLS] if is_short and source.kind != "table" else cells
        if source.kind == "text":
            text = source.text(index)
            look["text"] = text[: EXCERPT if is_short else LONGEST]
            look["is_cut"] = len(text) > len(look["text"])
        return look


def standing(entry: Entry) -> dict[str, Any]:
    """The state of a sample: its decision, and the version that the next decision must name."""
    return {"version": entry.version, "decision": None if entry.decision is None else asdict(entry.decision)}


def cell(value: Any) -> str | None:
    """A value of a table as a short text.

    >>> cell(2.5), cell(b"abc"), cell(None)
    ('2.5', '3 bytes', None)
    """
    if value is None:
        return None
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        value = value["bytes"]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = str(value)
    return text if len(text) <= CELL else text[: CELL - 1] + "…"
