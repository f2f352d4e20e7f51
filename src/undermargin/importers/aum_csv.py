"""`aum_values.csv`, which the package aum (and `undermargin.compat.aum`) writes: sample_id, aum."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from undermargin import Fold, Run
from undermargin.errors import InputError
from undermargin.importers.recording import as_labels


def from_aum_csv(
    path: str | Path,
    *,
    labels: Any = None,
    fold: Fold | None = None,
    class_names: Sequence[str] | None = None,
) -> Run:
    """The run behind an `aum_values.csv`, whose rows are ordered by AUM.

    Where the ids are 0..n-1 they are taken for positions, and `labels` is a list; any other ids are sorted as numbers,
    or kept in the file's order, and `labels` is a mapping from ids, as text. `fold` is the one that was trained on.
    """
    where = Path(path)
    values = _values(where)
    ids, positions = _order(list(values))
    known = as_labels(labels, where, ids=None if positions else ids, num_samples=len(ids))
    about: dict[str, Any] = {"labels": known, "ids": ids, "class_names": class_names}
    if fold is not None:
        if len(fold.labels) != len(ids):
            raise InputError(f"{where} holds {len(ids)} samples, but the fold has {len(fold.labels)}")
        about |= {"is_threshold": fold.is_threshold, "labels": fold.assigned_labels, "fold": fold.number}
    return Run(scores=np.array([values[one] for one in ids], np.float32), **about)


def _values(path: Path) -> dict[str, float]:
    """AUM by id."""
    values: dict[str, float] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if not {"sample_id", "aum"} <= set(rows.fieldnames or ()):
                raise InputError(
                    f"{path} has columns {', '.join(rows.fieldnames or ['none'])}; expected sample_id, aum"
                )
            for row in rows:
                if row["sample_id"] in values:
                    raise InputError(f"{path}, line {rows.line_num}: sample_id {row['sample_id']} occurs twice")
                values[row["sample_id"]] = _number(path, rows.line_num, row["aum"])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} could not be read: {error}") from None
    if not values:
        raise InputError(f"{path} holds no samples")
    return values


def _number(path: Path, line: int, text: str | None) -> float:
    if text == "":
        return float("nan")  # never measured
    try:
        return float(text or "cut off")
    except ValueError:
        raise InputError(f"{path}, line {line}: aum is {text!r}, expected a number; is the file complete?") from None


def _order(names: list[str]) -> tuple[list[str], bool]:
    """Ids in the order of the data set, as far as they tell it, and whether they are its positions 0..n-1."""
    if not all(name.isascii() and name.isdigit() for name in names):
        return names, False
    ordered = sorted(names, key=int)
    return ordered, [int(name) for name in ordered] == list(range(len(ordered)))
