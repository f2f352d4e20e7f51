"""The most suspicious samples, each with what it looks like: a picture, a text or a row."""

import base64
from typing import Any

from undermargin.errors import InputError
from undermargin.sources.originals import Originals
from undermargin.verdicts.columns import to_arrow
from undermargin.verdicts.record import Verdicts

SIDE = 160  # pixels
MAX_PICTURE_BYTES = 5_000_000  # of all pictures together, before they are written as text
MAX_TEXT = 600  # characters
MAX_CELL = 80
MAX_COLUMNS = 16
COLUMNS = ("index", "id", "label", "score", "suggested_label", "suggestion_confidence", "score_minus_cutoff")

LEFT_OUT = "Pictures, texts and rows were left out on request."
FROM_MEMORY = "The data set was scanned from memory, so there is nothing to look at but numbers."
GONE = "The data set is no longer where it was scanned, so its samples cannot be shown."
CHANGED = "The data set has changed since it was scanned, so its samples cannot be shown."
NUMBERS_ONLY = "The samples are embeddings: numbers that cannot be looked at."


def gallery(verdicts: Verdicts, originals: Originals, num_samples: int, *, has_thumbnails: bool) -> dict[str, Any]:
    """The flagged samples, most suspicious first, and why nothing of them is shown, if so."""
    table = to_arrow(verdicts, verdicts.flagged[:num_samples])
    samples = table.select([name for name in COLUMNS if name in table.column_names]).to_pylist()
    reason = _reason(originals) if has_thumbnails else LEFT_OUT
    if reason is None:
        _fill(samples, originals)
    return {"samples": samples, "num_flagged": len(verdicts.flagged), "reason": reason}


def _reason(originals: Originals) -> str | None:
    """Why samples cannot be shown; said in words that give away no path."""
    if originals.path is None:
        return FROM_MEMORY
    if not originals.is_there:
        return GONE
    if originals.kind == "embeddings":
        return NUMBERS_ONLY
    if originals.kind in ("text", "table"):
        try:
            _ = originals.rows
        except InputError:
            return CHANGED
    return None


def _fill(samples: list[dict[str, Any]], originals: Originals) -> None:
    """Add to each sample its picture, as long as there is room, its text or its row."""
    room = MAX_PICTURE_BYTES
    for sample in samples:
        index = sample["index"]
        if originals.kind == "text":
            sample["text"] = _cut(originals.text(index), MAX_TEXT)
        elif originals.kind == "table":
            sample["row"] = _row(originals, index)
        elif room > 0:
            picture = _picture(originals, index)
            if picture is not None:
                room -= len(picture)
                sample["picture"] = "data:image/jpeg;base64," + base64.b64encode(picture).decode()


def _picture(originals: Originals, index: int) -> bytes | None:
    try:
        return originals.picture(index, SIDE)
    except InputError:  # gone or damaged since the scan: the others can still be shown
        return None


def _row(originals: Originals, index: int) -> dict[str, str]:
    row = originals.row(index)
    used = originals.source.get("columns", list(row))[:MAX_COLUMNS]
    return {name: _cut("" if row[name] is None else str(row[name]), MAX_CELL) for name in used if name in row}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
