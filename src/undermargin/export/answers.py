"""What is exported: the verdicts, overruled by decisions, and the source in which the samples can be read."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from undermargin.scans.decisions import Decision
from undermargin.scans.effects import overruled
from undermargin.scans.folder import Folder
from undermargin.sources.base import Source
from undermargin.verdicts.columns import to_arrow
from undermargin.verdicts.record import Verdicts

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
        return self.verdicts.classes


def answers(folder: Folder, decisions: Mapping[int, Decision], *, only_flagged: bool) -> Answers:
    """The answers of a scan, of its flagged samples or of all."""
    verdicts = folder.verdicts()
    source = folder.confirmed_originals(verdicts)
    verdicts = overruled(verdicts, decisions)
    rows = verdicts.flagged if only_flagged else verdicts.order
    return Answers(verdicts, decisions, source, rows)
