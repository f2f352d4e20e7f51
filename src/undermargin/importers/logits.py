"""Logits or probabilities of another training, in NumPy, Parquet or JSON lines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from undermargin import Fold, Run
from undermargin.errors import InputError
from undermargin.importers.arrays import read_npy, read_npz
from undermargin.importers.recording import Recording
from undermargin.importers.rows import read_json_lines, read_parquet

READERS: dict[str, Callable[[Path, Any], Recording]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".jsonl": read_json_lines,
    ".json": read_json_lines,
}


def from_logits(
    path: str | Path,
    *,
    labels: Any = None,
    fold: Fold | None = None,
    class_names: Sequence[str] | None = None,
    is_probabilities: bool | None = None,
) -> Run:
    """The run of a training whose logits were stored for every epoch.

    - .npy: an array (epochs, samples, classes); .npz: the same, called `logits` or `probabilities`, and `labels`
    - .parquet, .jsonl: a row per epoch and sample, in order of the epochs, with `epoch`, `index` or `id`, `logits` or
      `probabilities` (a list), and optionally `label`

    `labels` are class numbers by position, a mapping from ids, or a file of them. `fold` is the one it was trained on.
    Probabilities are recognized by their sums unless `is_probabilities` says; their logarithms stand for the logits.
    """
    where = Path(path)
    if where.suffix.lower() not in READERS:
        raise InputError(f"{where} ends with {where.suffix or 'nothing'}, expected one of {', '.join(READERS)}")
    if not where.is_file():
        raise InputError(f"{where} does not exist" if not where.exists() else f"{where} is a folder, expected a file")
    recording = READERS[where.suffix.lower()](where, labels)
    if is_probabilities is not None:
        recording = replace(recording, is_probabilities=is_probabilities)
    return recording.run(fold, class_names)
