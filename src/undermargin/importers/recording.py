"""What every importer reads, piece by piece, and how it becomes a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from undermargin import Fold, Run, Tracker
from undermargin.errors import InputError

PIECE = 1 << 22  # numbers in memory at a time
TINY = np.finfo(np.float32).tiny

Labels = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


class Piece(NamedTuple):
    """Some samples in one epoch."""

    epoch: int
    logits: Array  # (samples of the piece, classes)
    indices: Array  # (samples of the piece,)


@dataclass(frozen=True)
class Recording:
    """A training that was recorded: its samples, and its logits in order of the epochs."""

    path: Path
    num_samples: int
    labels: Labels | None
    pieces: Iterable[Piece]
    ids: Sequence[Any] | None = None
    is_probabilities: bool | None = None  # None: what the first piece looks like

    def run(self, fold: Fold | None = None, class_names: Sequence[str] | None = None) -> Run:
        """Show every piece to a tracker, and take its run."""
        labels = self._trained_on(fold)
        pieces = iter(self.pieces)
        first = next(pieces, None)
        if first is None:
            raise InputError(f"{self.path} holds no logits")
        width, epoch = first.logits.shape[1], first.epoch
        self._check_labels(labels, width)
        is_probabilities = self.is_probabilities
        if is_probabilities is None:
            is_probabilities = looks_like_probabilities(first.logits)
        tracker = Tracker(self.num_samples, suggest=width if fold is None else fold.num_classes)
        for piece in chain([first], pieces):
            if piece.epoch < epoch:
                raise InputError(f"{self.path}: epoch {piece.epoch} comes after epoch {epoch}; sort the file by epoch")
            if piece.epoch > epoch:
                tracker.end_epoch()
                epoch = piece.epoch
            self._observe(tracker, piece, labels, is_probabilities=is_probabilities)
        tracker.end_epoch()
        run = tracker.run(fold, ids=self.ids, class_names=class_names)
        return run if fold is not None else replace(run, labels=labels)

    def _observe(self, tracker: Tracker, piece: Piece, labels: Labels, *, is_probabilities: bool) -> None:
        if len(piece.indices) and not 0 <= piece.indices.min() <= piece.indices.max() < self.num_samples:
            worst = piece.indices.max() if piece.indices.min() >= 0 else piece.indices.min()
            raise InputError(f"{self.path}: index {worst} in epoch {piece.epoch}, expected 0..{self.num_samples - 1}")
        logits = np.log(np.maximum(piece.logits, TINY)) if is_probabilities else piece.logits
        with torch.enable_grad():  # these are training steps, though of long ago
            tracker.update(np.ascontiguousarray(logits, np.float32), labels[piece.indices], piece.indices)

    def _trained_on(self, fold: Fold | None) -> Labels:
        if fold is None:
            if self.labels is None:
                raise InputError(f"{self.path} holds no labels; pass labels=, one class number per sample")
            return self.labels
        if len(fold.labels) != self.num_samples:
            raise InputError(f"{self.path} holds {self.num_samples} samples, but the fold has {len(fold.labels)}")
        return fold.labels

    def _check_labels(self, labels: Labels, width: int) -> None:
        if len(labels) and not 0 <= labels.min() <= labels.max() < width:
            raise InputError(
                f"{self.path}: labels run from {labels.min()} to {labels.max()}, but there are logits of {width} "
                f"classes; expected labels 0..{width - 1}"
            )


def looks_like_probabilities(outputs: Array) -> bool:
    """Whether no number is negative and every row sums to one; rows of zeros and ones alone could be anything."""
    sums_to_one = np.abs(outputs.sum(axis=1) - 1) < 1e-2  # half precision is no better than that
    return bool((outputs >= 0).all() and sums_to_one.all() and ((outputs > 0) & (outputs < 1)).any())


def as_labels(
    given: Any, path: Path, *, ids: Sequence[Any] | None = None, num_samples: int | None = None
) -> Labels | None:
    """Class numbers by position: from an array, a mapping from ids, a .npy file or a text file; None: not given."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = _by_id(given, path, ids)
    elif ids is not None:
        raise InputError(f"{path} names its samples; pass labels as a mapping from these ids")
    labels = np.asarray(_load(Path(given)) if isinstance(given, (str, Path)) else given)
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise InputError(
            f"labels have shape {labels.shape} and type {labels.dtype}, expected one class number per sample; "
            "encode names as 0..n-1, in the order of the logits"
        )
    if num_samples is not None and len(labels) != num_samples:
        raise InputError(f"{path} holds {num_samples} samples, but there are {len(labels)} labels; expected one each")
    return labels.astype(np.int64)


def _by_id(given: Mapping[Any, Any], path: Path, ids: Sequence[Any] | None) -> list[Any]:
    if ids is None:
        raise InputError(f"{path} numbers its samples 0..n-1; pass labels as a list in this order")
    missing = [name for name in ids if name not in given]
    if missing:
        raise InputError(f"labels lack {len(missing)} of the {len(ids)} ids in {path}, such as {missing[0]!r}")
    return [given[name] for name in ids]


def _load(path: Path) -> Array:
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (OSError, ValueError) as error:
        raise InputError(f"labels could not be read from {path}: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
