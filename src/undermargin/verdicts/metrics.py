"""How good verdicts and classifiers are, where the truth is known.

Average precision judges the ranking, Matthews correlation the verdicts. F1 stands beside them but rewards
flagging everything when noise is high: at 40 % noise "flag all" already has .57.
"""

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.verdicts.record import Verdicts

Mask = npt.NDArray[np.bool_]


def identification(verdicts: Verdicts, is_mislabeled: Mask) -> dict[str, float]:
    """Average precision, Matthews correlation, precision, recall, F1 and the flagged share; nan where undefined.

    Unjudged samples are left out: nothing was claimed about them.
    """
    if len(is_mislabeled) != len(verdicts):
        raise InputError(f"is_mislabeled has {len(is_mislabeled)} entries for {len(verdicts)} verdicts")
    judged = verdicts.judged_by > 0
    truth, flagged = np.asarray(is_mislabeled)[judged], verdicts.is_flagged[judged]
    hits, false, missed = (flagged & truth).sum(), (flagged & ~truth).sum(), (~flagged & truth).sum()
    passed = len(truth) - hits - false - missed
    product = float(hits + false) * float(hits + missed) * float(passed + false) * float(passed + missed)
    return {
        "average_precision": average_precision(_suspicion(verdicts)[judged], truth),
        "mcc": (float(hits) * float(passed) - float(false) * float(missed)) / product**0.5 if product else np.nan,
        "precision": _ratio(hits, hits + false),
        "recall": _ratio(hits, hits + missed),
        "f1": _ratio(2 * hits, 2 * hits + false + missed),
        "flagged_share": _ratio(hits + false, len(truth)),
    }


def _suspicion(verdicts: Verdicts) -> npt.NDArray[np.float64]:
    """High for what comes first in the verdicts' order: (samples,)."""
    suspicion = np.empty(len(verdicts))
    suspicion[verdicts.order] = -np.arange(len(verdicts))
    return suspicion


def average_precision(suspicion: npt.NDArray[np.floating], truth: Mask) -> float:
    """Mean precision at each mislabeled sample, going down from the highest suspicion; ties count together."""
    if not truth.any():
        return float("nan")
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(truth, suspicion))


def error(predictions: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> float:
    """Share of wrong predictions."""
    return float((np.asarray(predictions) != np.asarray(labels)).mean())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
