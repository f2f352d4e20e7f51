"""What becomes of every sample: from verdicts and decisions to rows that go and labels that change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.decisions import Decision
from undermargin.scans.effects import effects
from undermargin.verdicts.record import Verdicts

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Flagged = Literal["drop", "relabel", "keep"]
NO_OTHER = "verdict: flagged, and no other label to suggest"
MOST_LOST = 0.5  # share of a class; more than this is worth a warning


@dataclass(frozen=True, eq=False)
class Changes:
    """Arrays in the data set's order. `why` says, for each changed sample, whether a verdict or a decision did it."""

    ids: Sequence[str]
    class_names: Sequence[str]
    labels: Ints  # (samples,) as they are
    new_labels: Ints  # (samples,) as they will be
    is_dropped: Mask  # (samples,)
    why: Mapping[int, str]
    scores: npt.NDArray[np.floating[Any]]

    @cached_property
    def relabeled(self) -> Ints:
        """Indices of the samples that stay with another label."""
        return np.flatnonzero((self.labels != self.new_labels) & ~self.is_dropped)

    @cached_property
    def exemplars(self) -> Ints:
        """For each class, the index of a sample that has its label: how the label is written in the data."""
        first = np.full(len(self.class_names), -1)
        first[self.labels[::-1]] = np.arange(len(self.labels))[::-1]
        return first

    def rows(self) -> list[dict[str, Any]]:
        """One row a changed sample."""
        changed = np.flatnonzero(self.is_dropped | (self.labels != self.new_labels)).tolist()
        return [
            {
                "index": index,
                "id": self.ids[index],
                "action": "drop" if self.is_dropped[index] else "relabel",
                "label": self.class_names[self.labels[index]],
                "new_label": None if self.is_dropped[index] else self.class_names[self.new_labels[index]],
                "why": self.why[index],
                "score": float(self.scores[index]),
            }
            for index in changed
        ]

    def classes(self) -> list[dict[str, Any]]:
        """One row a class: how many samples it had, loses, gains, and has."""
        size = len(self.class_names)
        before = np.bincount(self.labels, minlength=size)
        dropped = np.bincount(self.labels[self.is_dropped], minlength=size)
        away = np.bincount(self.labels[self.relabeled], minlength=size)
        gained = np.bincount(self.new_labels[self.relabeled], minlength=size)
        return [
            {
                "label": self.class_names[label],
                "num_before": int(before[label]),
                "num_dropped": int(dropped[label]),
                "num_relabeled": int(away[label]),
                "num_gained": int(gained[label]),
                "num_after": int((before - dropped - away + gained)[label]),
            }
            for label in range(size)
        ]

    def summary(self) -> dict[str, Any]:
        """Counts, and the classes that lose more than half of their samples."""
        classes = self.classes()
        return {
            "num_before": len(self.labels),
            "num_dropped": int(self.is_dropped.sum()),
            "num_relabeled": len(self.relabeled),
            "num_after": int((~self.is_dropped).sum()),
            "num_without_suggestion": sum(why == NO_OTHER for why in self.why.values()),
            "classes": classes,
            "shrinking": [
                row["label"]
                for row in classes
                if row["num_dropped"] + row["num_relabeled"] > MOST_LOST * row["num_before"]
            ],
        }


def plan(verdicts: Verdicts, decisions: Mapping[int, Decision], *, flagged: Flagged = "drop") -> Changes:
    """Decisions first; where there is none, flagged samples are dropped, relabeled as suggested, or kept.

    A flagged sample without a suggestion cannot be relabeled and is dropped.
    """
    if verdicts.labels is None:
        raise InputError("the verdicts have no labels, so there is nothing to clean; give labels to the runs")
    names = _class_names(verdicts)
    new_labels, is_dropped = verdicts.labels.copy(), np.zeros(len(verdicts), bool)
    why: dict[int, str] = {}
    suggested = verdicts.suggested_labels
    for index in verdicts.flagged.tolist() if flagged != "keep" else []:
        why[index] = "verdict: flagged"
        if flagged == "drop":
            is_dropped[index] = True
        elif suggested is None or suggested[index] in (-1, verdicts.labels[index]):
            is_dropped[index], why[index] = True, NO_OTHER
        else:
            new_labels[index] = suggested[index]
    changed = effects(decisions, verdicts.labels, names)
    is_dropped = np.where(changed.is_decided, changed.is_dropped, is_dropped)
    new_labels = np.where(changed.is_decided, changed.labels, new_labels)
    for index, decision in decisions.items():
        why[index] = f"decision of {decision.who}{f': {decision.note}' if decision.note else ''}"
    ids = [str(index) for index in range(len(verdicts))] if verdicts.ids is None else verdicts.ids
    return Changes(ids, names, verdicts.labels, new_labels, is_dropped, why, verdicts.scores)


def _class_names(verdicts: Verdicts) -> list[str]:
    if verdicts.class_names is not None:
        return list(verdicts.class_names)
    highest = [values.max(initial=-1) for values in (verdicts.labels, verdicts.suggested_labels) if values is not None]
    return [str(number) for number in range(int(max(highest)) + 1)]
