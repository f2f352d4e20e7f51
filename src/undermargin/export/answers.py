"""What is exported: the verdicts, overruled by decisions, and the source in which the samples can be read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.scans.decisions import Decision
from undermargin.scans.folder import Folder
from undermargin.sources.base import Source
from undermargin.verdicts.columns import to_arrow
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """One answer per sample. `rows` are the exported samples, most suspicious first."""

    verdicts: Verdicts  # with the decisions applied
    decisions: Mapping[int, Decision]
    source: Source
    rows: Ints

    def table(self, rows: Ints | None = None) -> pa.Table:
        """The columns of verdicts.parquet, and a column of decisions if there are any."""
        rows = self.rows if rows is None else rows
        table = to_arrow(self.verdicts, rows)
        if not self.decisions:
            return table
        actions = [self.decisions[row].action if row in self.decisions else None for row in rows.tolist()]
        return table.append_column("decision", pa.array(actions, pa.string()))

    @property
    def class_names(self) -> list[str]:
        """The names of all classes."""
        if self.verdicts.class_names is not None:
            return list(self.verdicts.class_names)
        named = [labels for labels in (self.verdicts.labels, self.verdicts.suggested_labels) if labels is not None]
        return [
            str(label) for label in range(max((int(labels.max()) for labels in named if len(labels)), default=-1) + 1)
        ]


def answers(folder: Folder, decisions: Mapping[int, Decision], *, only_flagged: bool) -> Answers:
    """The answers of a scan, of its flagged samples or of all."""
    verdicts = folder.verdicts()
    source = folder.confirmed_originals(verdicts)
    overruled = _overruled(verdicts, decisions)
    rows = overruled.flagged if only_flagged else overruled.order
    return Answers(overruled, decisions, source, rows)


def _overruled(verdicts: Verdicts, decisions: Mapping[int, Decision]) -> Verdicts:
    """The verdicts with decisions applied: kept with its label, or flagged with the label it should have."""
    if not decisions:
        return verdicts
    if max(decisions) >= len(verdicts):
        raise InputError(f"a decision is about sample {max(decisions)}, but there are {len(verdicts)} samples")
    codes = verdicts.codes.copy()
    suggested = verdicts.suggested_labels.copy() if verdicts.suggested_labels is not None else None
    confidence = verdicts.suggestion_confidence.copy() if verdicts.suggestion_confidence is not None else None
    numbers = {verdicts.name(label): label for label in range(len(verdicts.class_names or ()))}
    for index, decision in decisions.items():
        codes[index] = KEPT if decision.action == "keep" else FLAGGED
        label = _label(verdicts, index, decision, numbers)
        if suggested is not None and label is not None:
            suggested[index] = label
            if confidence is not None:
                confidence[index] = 1
        elif suggested is not None and verdicts.labels is not None and suggested[index] == verdicts.labels[index]:
            suggested[index] = -1  # dropped, and no other label is known
    return replace(verdicts, codes=codes, suggested_labels=suggested, suggestion_confidence=confidence)


def _label(verdicts: Verdicts, index: int, decision: Decision, numbers: Mapping[str, int]) -> int | None:
    """The class that was decided on; None if the sample is to be dropped."""
    if decision.action == "keep" and verdicts.labels is not None:
        return int(verdicts.labels[index])
    if decision.action != "relabel" or decision.label is None:
        return None
    if decision.label not in numbers:
        raise InputError(f"sample {index} was relabeled as {decision.label!r}, which is none of the scan's classes")
    return numbers[decision.label]
