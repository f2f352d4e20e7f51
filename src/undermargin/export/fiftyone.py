"""FiftyOne's import format for labelled images, FiftyOneImageClassificationDataset: one labels.json.

Each image is named by its whole path, which FiftyOne reads wherever its own folder is.
"""

from pathlib import Path
from typing import Any

from undermargin.errors import InputError
from undermargin.export.answers import Answers
from undermargin.export.tables import pieces
from undermargin.files import replacing
from undermargin.jsonable import to_json

ATTRIBUTES = ("index", "score", "verdict", "suggested_label", "suggestion_confidence", "decision")


def write_fiftyone(answers: Answers, path: Path) -> None:
    """The label of every image, with score and verdict as its attributes."""
    if answers.originals.kind != "images":
        raise InputError(f"FiftyOne shows images; these samples are {answers.originals.kind}")
    labels: dict[str, Any] = {}
    for part in pieces(answers):
        for row in part.to_pylist():
            attributes = {name: row[name] for name in ATTRIBUTES if row.get(name) is not None}
            labels[str(answers.originals.file(row["index"]))] = {"label": row["label"], "attributes": attributes}
    with replacing(path) as partial:
        partial.write_text(to_json({"classes": answers.class_names, "labels": labels}) + "\n", encoding="utf-8")
