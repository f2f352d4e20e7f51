"""The most suspicious samples, each with its picture, text or row."""

import base64
from typing import Any

from undermargin.errors import InputError
from undermargin.sources.base import Source
from undermargin.verdicts.columns import to_arrow
from undermargin.verdicts.record import Verdicts

SIDE = 160  # pixels
MAX_PICTURE_BYTES = 5_000_000  # of all pictures together, before they are encoded as text
MAX_TEXT = 600  # characters
MAX_CELL = 80  # characters
MAX_COLUMNS = 16
COLUMNS = (
    "index",
    "id",
    "label",
    "score",
    "suggested_label",
    "suggestion_confidence",
    "score_minus_cutoff",
    "p_mislabeled",
)

LEFT_OUT = "Pictures, texts and rows were left out on request."
FROM_MEMORY = "The data set was scanned from memory, so its samples cannot be shown."
GONE = "The data set is no longer where it was scanned, so its samples cannot be shown."
CHANGED = "The data set has changed since it was scanned, so its samples cannot be shown."
NUMBERS_ONLY = "The samples are embeddings: numbers that cannot be shown."


def gallery(verdicts: Verdicts, source: Source, num_samples: int, *, has_thumbnails: bool) -> dict[str, Any]:
    """The flagged samples, most suspicious first, and the reason if their contents are not shown."""
    table = to_arrow(verdicts, verdicts.flagged[:num_samples])
    samples = table.select([name for name in COLUMNS if name in table.column_names]).to_pylist()
    reason = _reason(source) if has_thumbnails else LEFT_OUT
    if reason is None:
        _fill(samples, source)
    return {"samples": samples, "num_flagged": len(verdicts.flagged), "reason": reason}


def _reason(source: Source) -> str | None:
    """Why samples cannot be shown, without naming a path; None if they can."""
    if not source.is_there:
        return FROM_MEMORY if source.path is None else GONE
    if source.kind == "embeddings":
        return NUMBERS_ONLY
    try:
        source.check()
    except InputError:
        return CHANGED
    return None


def _fill(samples: list[dict[str, Any]], source: Source) -> None:
    """Add to each sample its text, its row, or, while there is room, its picture."""
    room = MAX_PICTURE_BYTES
    for sample in samples:
        index = sample["index"]
        if source.kind == "text":
            sample["text"] = _cut(source.text(index), MAX_TEXT)
        elif source.kind == "table":
            sample["row"] = _row(source, index)
        elif room > 0:
            picture = _picture(source, index)
            if picture is not None:
                room -= len(picture)
                sample["picture"] = "data:image/jpeg;base64," + base64.b64encode(picture).decode()


def _picture(source: Source, index: int) -> bytes | None:
    try:
        return source.picture(index, SIDE)
    except InputError:  # gone or changed since the scan; the others can still be shown
        return None


def _row(source: Source, index: int) -> dict[str, str]:
    row = source.row(index)
    used = source.found.get("columns", list(row))[:MAX_COLUMNS]
    return {name: _cut("" if row[name] is None else str(row[name]), MAX_CELL) for name in used if name in row}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
