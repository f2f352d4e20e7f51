"""FiftyOne's import format for labeled images, FiftyOneImageClassificationDataset: one labels.json; and, if FiftyOne
is installed, a data set of that name in its database.

Each image is named by its absolute path, which FiftyOne can read from anywhere.
"""

import importlib.util
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError
from undermargin.export.answers import Answers
from undermargin.export.tables import pieces
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json

ATTRIBUTES = ("index", "score", "verdict", "suggested_label", "suggestion_confidence", "decision")


def write_fiftyone(answers: Answers, path: Path) -> None:
    """The label of every image, with score and verdict as its attributes."""
    source = answers.source
    if source.kind != "images":
        raise InputError(f"FiftyOne shows images; these samples are {source.kind}")
    if source.has_files:
        source.check(is_thorough=True)
    labels: dict[str, Any] = {}
    for part in pieces(answers):
        for row in part.to_pylist():
            attributes = {name: row[name] for name in ATTRIBUTES if row.get(name) is not None}
            labels[str(source.file(row["index"]))] = {"label": row["label"], "attributes": attributes}
    with replacing(path) as partial:
        partial.write_text(to_json({"classes": answers.class_names, "labels": labels}) + "\n", encoding="utf-8")
    if importlib.util.find_spec("fiftyone") is not None:
        _make_dataset(path.stem, labels)


def _make_dataset(name: str, labels: dict[str, Any]) -> None:
    """A persistent data set in FiftyOne's database; one of the same name is replaced, as the file is."""
    import fiftyone

    samples = [
        fiftyone.Sample(
            filepath=file,
            ground_truth=fiftyone.Classification(label=one["label"]),
            **{f"undermargin_{key}": value for key, value in one["attributes"].items()},
        )
        for file, one in labels.items()
    ]
    try:
        dataset = fiftyone.Dataset(name, persistent=True, overwrite=True)
        dataset.add_samples(samples)
    except Exception as error:  # its database is a separate server, which may not start
        raise FolderError(
            f"FiftyOne is installed but could not make a data set: {error}; {name}.json is written and can be imported"
        ) from None
