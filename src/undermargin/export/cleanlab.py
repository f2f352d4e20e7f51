"""The frame that cleanlab calls label issues: is_label_issue, label_quality, given_label, predicted_label.

Rows are in the order of the data set, as in cleanlab, after a column with the index. `CleanLearning.fit` takes the
frame as `label_issues` once the labels are replaced by the numbers it trains with.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.export.answers import Answers
from undermargin.storage.csv import write_tables
from undermargin.storage.files import replacing
from undermargin.verdicts.record import Verdicts


def write_cleanlab(answers: Answers, path: Path) -> None:
    """As CSV or Parquet, by the suffix of the path."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"cleanlab's frame is written as .csv or .parquet, not as {path.name!r}")
    rows = np.sort(answers.rows)
    table = answers.table(rows)
    frame = pa.table(
        {
            "index": table["index"],
            "id": table["id"],
            "is_label_issue": pa.array(answers.verdicts.is_flagged[rows]),
            "label_quality": pa.array(quality(answers.verdicts)[rows], from_pandas=True),
            "given_label": table["label"],
            "predicted_label": table["suggested_label"],
        }
    )
    if path.suffix == ".csv":
        write_tables(path, [frame])
        return
    with replacing(path) as partial:
        pq.write_table(frame, partial, compression="zstd")


def quality(verdicts: Verdicts) -> npt.NDArray[np.float64]:
    """The score as a number from 0 to 1: below one half flagged, above it kept; nan: unjudged.

    Flagged samples are in the same order as in the verdicts, and so are kept samples.
    """
    excess = np.asarray(verdicts.excess, np.float64)
    judged = ~np.isnan(excess)
    scale = float(np.median(np.abs(excess[judged]))) if judged.any() else 1.0
    squashed = 0.5 + 0.5 * np.tanh(0.5 * excess / (scale or 1.0))
    # a sample that one of two runs keeps is kept although its mean may lie below the cutoff; decisions overrule both
    return np.where(
        verdicts.is_flagged, np.minimum(squashed, 0.5), np.where(verdicts.is_kept, np.maximum(squashed, 0.5), squashed)
    )
