"""A Hugging Face data set on disk: the samples as they are, with the answers as extra columns."""

import shutil
from pathlib import Path

import numpy as np

from undermargin.errors import FolderError, InputError
from undermargin.export.answers import Answers
from undermargin.sources.datasets_library import import_datasets, no_progress_bars
from undermargin.storage.files import making

PREFIX = "undermargin_"  # of the extra columns: a data set may have a `score` of its own
EXTRA = ("id", "score", "verdict", "suggested_label", "suggestion_confidence", "decision")


def write_dataset(answers: Answers, path: Path) -> None:
    """In the order of the data set; `datasets.load_from_disk` reads it."""
    import_datasets()
    if not answers.source.is_there:
        raise InputError("the data set was scanned from memory or is no longer there; its samples cannot be copied")
    if path.exists() and not (path / "dataset_info.json").is_file():
        raise FolderError(f"{path} already exists and is not a Hugging Face data set; choose another path")
    rows = np.sort(answers.rows)
    labels = answers.verdicts.labels
    if labels is None:
        raise InputError("the verdicts have no labels; give labels to the runs")
    answers.source.check(is_thorough=True)
    dataset = answers.source.dataset(rows, labels[rows], answers.class_names)
    table = answers.table(rows)
    for name in EXTRA:
        if name in table.column_names:
            dataset = dataset.add_column(PREFIX + name, table[name].to_pylist())
    with making(path) as partial:
        with no_progress_bars():
            dataset.save_to_disk(partial)
        if path.exists():
            shutil.rmtree(path)
