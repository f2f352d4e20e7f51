"""What is done to a table's rows: some go, some take the label of another row. The same for every format of rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.cleaning.changes import Changes

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edit:
    """For a table of so many rows, scanned ones and others."""

    is_kept: npt.NDArray[np.bool_]  # (rows,)
    label_from: Rows  # (rows,) the row whose label it takes: itself, or one that has the new label

    @classmethod
    def of(cls, changes: Changes, rows: Rows, num_rows: int) -> "Edit":
        """Changes of samples as changes of rows; whatever was not scanned stays."""
        missing = sorted({changes.class_names[label] for label in changes.new_labels[changes.relabeled].tolist()
                          if changes.exemplars[label] < 0})  # fmt: skip
        if missing:
            raise InputError(f"no sample has the label {', '.join(missing)}, so how it is written is not known")
        is_kept, label_from = np.ones(num_rows, bool), np.arange(num_rows)
        is_kept[rows[changes.is_dropped]] = False
        label_from[rows[changes.relabeled]] = rows[changes.exemplars[changes.new_labels[changes.relabeled]]]
        return cls(is_kept, label_from)
