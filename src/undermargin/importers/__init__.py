"""Runs from what another training left behind: logits or probabilities, or the logs of other tools.

    runs = importers.read("outputs.npz", labels=labels)
    verdicts = identify(runs, "gaussian")

Files are read in pieces, so memory depends on the number of samples, not on the number of epochs. A training without
threshold samples can be judged only by cutoffs that need none; pass the `fold` it was trained on where there was one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undermargin import Fold, Run
from undermargin.errors import InputError
from undermargin.importers.aum_csv import from_aum_csv
from undermargin.importers.cartography import from_cartography
from undermargin.importers.logits import READERS, from_logits

__all__ = ["FORMATS", "Format", "from_aum_csv", "from_cartography", "from_logits", "read"]


@dataclass(frozen=True)
class Format:
    """One row of FORMATS: how a file or folder is recognized and read."""

    description: str
    suffixes: tuple[str, ...]  # of its name; empty: a folder
    load: Callable[..., Run]


FORMATS = {
    "logits": Format("logits or probabilities of every epoch, sample and class", tuple(READERS), from_logits),
    "aum": Format("aum_values.csv of the package aum", (".csv",), from_aum_csv),
    "cartography": Format(
        "training_dynamics/ of dataset-cartography: JSON lines, a file per epoch", (), from_cartography
    ),
}


def read(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    labels: Any = None,
    fold: Fold | None = None,
    class_names: Sequence[str] | None = None,
) -> list[Run]:
    """The runs at a path: a file of logits, an `aum_values.csv`, or the folder of dataset-cartography.

    `format` is a name of FORMATS (default: by the path's ending). `labels` are needed where the file has none: class
    numbers by position, a mapping from ids, or a .npy file or a text file with one label per line. `fold` is the fold
    of threshold samples that was trained on.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; choose from {', '.join(FORMATS)}")
    load = FORMATS[_find(Path(path)) if format is None else format].load
    return [load(path, labels=labels, fold=fold, class_names=class_names)]


def _find(path: Path) -> str:
    if not path.exists():
        raise InputError(f"{path} does not exist")
    for name, row in FORMATS.items():
        if path.is_dir() if not row.suffixes else path.suffix.lower() in row.suffixes:
            return name
    known = ", ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
    raise InputError(f"{path} ends with {path.suffix or 'nothing'}; expected a folder or one of {known}")
