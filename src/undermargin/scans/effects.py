"""What a decision does to a sample: one meaning, for scanning again, retraining, cleaning, exports and reports.

- keep: the label is right. The sample counts as kept, whatever the verdict was, and its label is the suggested one.
- relabel: the label in the data set was wrong. The sample counts as flagged, with the new label as the suggested one;
  wherever it is trained on or written again, it stays and has the new label.
- drop: the sample is of no use. It counts as flagged, and is left out of trainings and of cleaned data. A suggested
  label stays if it names another class; nobody said what the label should be.

Samples without a decision are as the verdicts have them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.decisions import Decision
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

Decided = Mapping[int, Decision]  # by index
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Effects:
    """What decisions do to the samples of a data set: arrays in its order."""

    is_decided: Mask
    is_wrong: Mask  # the label in the data set was wrong, or the sample is of no use: relabeled or dropped
    is_dropped: Mask
    labels: Ints  # with relabels applied

    @property
    def dropped(self) -> list[int]:
        """Indices of the samples that are left out of a training."""
        return [int(index) for index in np.flatnonzero(self.is_dropped)]

    @property
    def rows(self) -> Ints | None:
        """Indices of the samples to train on; None for all."""
        return np.flatnonzero(~self.is_dropped) if self.is_dropped.any() else None


def effects(decided: Decided, labels: Ints, class_names: Sequence[str] | None) -> Effects:
    """What decisions do to samples with these labels: (samples,) class numbers as the data set has them."""
    size = len(labels)
    if decided and max(decided) >= size:
        raise InputError(f"a decision is about sample {max(decided)}, but there are {size} samples")
    is_decided, is_wrong, is_dropped = np.zeros((3, size), bool)
    new = labels.copy()
    for index, decision in decided.items():
        is_decided[index] = True
        is_wrong[index] = decision.action != "keep"
        is_dropped[index] = decision.action == "drop"
        if decision.action == "relabel":
            new[index] = _number(index, decision.label, class_names)
    return Effects(is_decided, is_wrong, is_dropped, new)


def _number(index: int, name: str | None, class_names: Sequence[str] | None) -> int:
    if name is not None and class_names is not None and name in class_names:
        return list(class_names).index(name)
    if name is not None and class_names is None and name.isdecimal():
        return int(name)
    raise InputError(f"sample {index} was relabeled as {name!r}, which is none of the scan's classes")


def overruled(verdicts: Verdicts, decided: Decided) -> Verdicts:
    """The verdicts with decisions in them; `about["num_decided"]` says how many."""
    if not decided:
        return verdicts
    labels = np.full(len(verdicts), -1) if verdicts.labels is None else verdicts.labels
    found = effects(decided, labels, verdicts.class_names)
    codes = np.where(found.is_wrong, FLAGGED, np.where(found.is_decided, KEPT, verdicts.codes)).astype(np.int8)
    suggested, confidence = _suggestions(verdicts, labels), verdicts.suggestion_confidence
    is_named = found.is_decided & ~found.is_dropped  # people said what the label should be
    suggested = np.where(is_named, found.labels, suggested)
    suggested[found.is_dropped & (suggested == labels)] = -1
    if confidence is not None:
        confidence = np.where(is_named, 1.0, confidence)
    return replace(
        verdicts,
        codes=codes,
        suggested_labels=None if (suggested < 0).all() else suggested,
        suggestion_confidence=confidence,
        about=verdicts.about | {"num_decided": len(decided)},
    )


def _suggestions(verdicts: Verdicts, labels: Ints) -> Ints:
    """The suggested labels; where the runs gave none, the labels of samples that are not flagged."""
    if verdicts.suggested_labels is not None:
        return verdicts.suggested_labels
    return np.where(verdicts.is_flagged, -1, labels)
