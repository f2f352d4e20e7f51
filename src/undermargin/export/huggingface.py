"""A Hugging Face data set on disk: the samples as they are, with the answers as extra columns."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import FolderError, InputError
from undermargin.export.answers import Answers, Ints
from undermargin.sources.originals import ARRAYS, CLASS_FOLDERS, DATASET, Originals
from undermargin.sources.quiet import no_progress_bars

PREFIX = "undermargin_"  # of the extra columns: a data set may well have a `score` of its own
EXTRA = ("id", "score", "verdict", "suggested_label", "suggestion_confidence", "decision")


def write_dataset(answers: Answers, path: Path) -> None:
    """In the data set's order; `datasets.load_from_disk` reads it."""
    try:
        import datasets
    except ImportError:
        raise InputError("this format needs the package datasets: pip install 'undermargin[datasets]'") from None
    originals = answers.originals
    if not originals.is_there:
        raise InputError("the data set was scanned from memory or is no longer there; its samples cannot be copied")
    if path.exists() and not (path / "dataset_info.json").is_file():
        raise FolderError(f"{path} is there and is no data set of Hugging Face; it is not overwritten")
    rows = np.sort(answers.rows)
    dataset = _samples(datasets, originals, answers, rows)
    table = answers.table(rows)
    for name in EXTRA:
        if name in table.column_names:
            dataset = dataset.add_column(PREFIX + name, table[name].to_pylist())
    partial = path.with_name(path.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    with no_progress_bars():
        dataset.save_to_disk(partial)
    shutil.rmtree(path, ignore_errors=True)
    partial.rename(path)


def _samples(datasets: Any, originals: Originals, answers: Answers, rows: Ints) -> Any:
    """The data set that was scanned, these samples of it."""
    if originals.format == DATASET:
        return datasets.load_from_disk(str(originals.path)).select(originals.rows[rows])
    if originals.format not in (CLASS_FOLDERS, ARRAYS):
        return datasets.Dataset(originals.table.take(originals.rows[rows]))
    labels = answers.verdicts.labels
    assert labels is not None  # noqa: S101 - sources of these formats always have labels
    columns = {"label": labels[rows].tolist()}
    features = {"label": datasets.ClassLabel(names=answers.class_names)}
    if originals.format == CLASS_FOLDERS:
        columns["image"] = [{"bytes": originals.file(row).read_bytes(), "path": originals.ids[row]} for row in rows]
        features["image"] = datasets.Image()
    elif originals.kind == "images":
        columns["image"] = [originals.array(row) for row in rows]
        features["image"] = datasets.Image()
    else:
        columns["embedding"] = [originals.array(row).tolist() for row in rows]
        features["embedding"] = datasets.Sequence(datasets.Value("float32"))
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))
