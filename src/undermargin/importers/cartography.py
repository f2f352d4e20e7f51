"""dataset-cartography's training dynamics: `dynamics_epoch_0.jsonl`, ... of lines {guid, logits_epoch_0, gold}."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from undermargin import Fold, Run
from undermargin.errors import InputError
from undermargin.importers.recording import Piece, Recording, as_labels
from undermargin.importers.rows import ROWS, Samples, field, json_lines

NAME = re.compile(r"dynamics_epoch_(\d+)\.jsonl?")  # their writer says .jsonl, their reader .json


def from_cartography(
    folder: str | Path,
    *,
    labels: Any = None,
    fold: Fold | None = None,
    class_names: Sequence[str] | None = None,
) -> Run:
    """The run of a training that dataset-cartography logged; `folder` is training_dynamics/ or the one around it.

    Samples are in the order of the first epoch, and their ids are the guids. `labels` (a mapping from guids) and `fold`
    replace the labels in the files.
    """
    where = Path(folder)
    where = where / "training_dynamics" if (where / "training_dynamics").is_dir() else where
    files = {int(match[1]): file for file in where.glob("*") if (match := NAME.fullmatch(file.name))}
    if not files:
        raise InputError(
            f"{where} holds no dynamics_epoch_0.jsonl; expected the training_dynamics/ of dataset-cartography"
        )
    if sorted(files) != list(range(len(files))):
        missing = next(epoch for epoch in range(len(files)) if epoch not in files)
        raise InputError(f"{where} holds {len(files)} epochs up to {max(files)}, but epoch {missing} is missing")
    samples = Samples(where, is_named=True)
    for number, row in json_lines(files[0]):
        samples.add([field(files[0], number, row, "guid")], [field(files[0], number, row, "gold")])
    known = samples.labels() if labels is None else as_labels(labels, where, ids=samples.ids)
    pieces = (piece for epoch in sorted(files) for piece in _pieces(files[epoch], epoch, samples))
    return Recording(where, samples.count, known, pieces, samples.ids).run(fold, class_names)


def _pieces(path: Path, epoch: int, samples: Samples) -> Iterator[Piece]:
    lines = json_lines(path)
    while chunk := list(islice(lines, ROWS)):
        guids = [field(path, number, row, "guid") for number, row in chunk]
        rows = [field(path, number, row, f"logits_epoch_{epoch}") for number, row in chunk]
        try:
            logits, indices = np.asarray(rows, np.float32), samples.at(guids)
        except (TypeError, ValueError):
            raise InputError(f"{path}: logits are not lists of equally many numbers, one per class") from None
        except KeyError as unknown:
            raise InputError(f"{path}: guid {unknown} does not occur in epoch 0") from None
        yield Piece(epoch, logits, indices)
