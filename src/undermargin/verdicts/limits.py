"""How many samples to flag when the caller sets a precision or a budget instead of even odds."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from undermargin.errors import IdentifyError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def by_budget(log_odds: Floats, budget: int) -> Mask:
    """The `budget` samples that are most likely mislabeled: (samples,) bool.

    >>> by_budget(np.array([-1.0, 2.0, 0.5, np.nan]), 2).tolist()
    [False, True, True, False]
    """
    if budget < 0:
        raise IdentifyError(f"budget is {budget}, expected the number of samples to flag, 0 or more")
    return _first(log_odds, min(budget, int((~np.isnan(log_odds)).sum())))


def by_precision(log_odds: Floats, precision: float) -> Mask:
    """As many samples as keep this expected share of wrong labels among the flagged: (samples,) bool.

    >>> by_precision(np.log([9.0, 4.0, 1.0]), 0.85).tolist()
    [True, True, False]
    """
    if not isinstance(precision, (int, float)) or not 0 < precision <= 1:
        raise IdentifyError(f"precision is {precision}, expected a share above 0 and at most 1, such as 0.9")
    odds = -np.sort(-log_odds[~np.isnan(log_odds)])
    expected = np.cumsum(expit(odds)) / np.arange(1, len(odds) + 1)
    return _first(log_odds, int((expected >= precision).sum()))  # the mean falls as samples are added


def _first(log_odds: Floats, number: int) -> Mask:
    is_flagged = np.zeros(len(log_odds), bool)
    is_flagged[np.argsort(-log_odds, kind="stable")[:number]] = True  # nan sorts last
    return is_flagged
