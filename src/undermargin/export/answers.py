"""What is exported: the verdicts, overruled by what people decided, and where the samples themselves can be read."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from undermargin.scans.decisions import Decision
from undermargin.scans.effects import overruled
from undermargin.scans.folder import Folder
from undermargin.sources.originals import Originals
from undermargin.verdicts.columns import to_arrow
from undermargin.verdicts.record import Verdicts

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """One answer a sample. `rows` are the exported samples, most suspicious first."""

    verdicts: Verdicts  # with the decisions in it
    decisions: Mapping[int, Decision]
    originals: Originals
    rows: Ints

    def table(self, rows: Ints | None = None) -> pa.Table:
        """The columns of verdicts.parquet, and the decision behind them where there is any."""
        rows = self.rows if rows is None else rows
        table = to_arrow(self.verdicts, rows)
        if not self.decisions:
            return table
        actions = [self.decisions[row].action if row in self.decisions else None for row in rows.tolist()]
        return table.append_column("decision", pa.array(actions, pa.string()))

    @property
    def class_names(self) -> list[str]:
        """What all classes are called."""
        if self.verdicts.class_names is not None:
            return list(self.verdicts.class_names)
        named = [labels for labels in (self.verdicts.labels, self.verdicts.suggested_labels) if labels is not None]
        return [
            str(label) for label in range(max((int(labels.max()) for labels in named if len(labels)), default=-1) + 1)
        ]


def answers(folder: Folder, decisions: Mapping[int, Decision], *, only_flagged: bool) -> Answers:
    """A scan's answers."""
    verdicts = folder.verdicts()
    originals = folder.confirmed_originals(verdicts)
    verdicts = overruled(verdicts, decisions)
    rows = verdicts.flagged if only_flagged else verdicts.order
    return Answers(verdicts, decisions, originals, rows)
