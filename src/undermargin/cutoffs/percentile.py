"""The paper's cutoff: a percentile of the threshold samples' scores, and how far it can be trusted."""

import numpy as np

from undermargin.errors import IdentifyError
from undermargin.tracking.run import Run

FEW_THRESHOLD_SAMPLES = 200  # a 99th percentile of fewer is hardly more than their maximum


def percentile(run: Run, share: float = 99) -> float:
    """The score below which a label is no more believable than one we made up (paper: threshold samples).

    `inverted_cdf` is the reading that agrees with the authors' code in every decision.
    """
    return float(np.percentile(_threshold_scores(run), share, method="inverted_cdf"))


def normal_percentile(run: Run, share: float = 99) -> float:
    """The percentile of a normal distribution with the threshold samples' mean and deviation.

    Of 130 scores it varies half as much from draw to draw as their own 99th percentile; but where scores are skewed it
    is off by more than that, however many there are.
    """
    from scipy.special import ndtri

    scores = _threshold_scores(run)
    return float(scores.mean() + ndtri(share / 100) * scores.std())


def has_few(run: Run) -> bool:
    """Whether a percentile hangs on one or two threshold samples."""
    return len(_threshold_scores(run)) < FEW_THRESHOLD_SAMPLES


def percentile_interval(run: Run, share: float = 99, level: float = 0.95) -> tuple[float, float]:
    """Where the true percentile lies with probability `level`, from order statistics alone.

    The number of threshold samples below the true percentile is binomial, so the interval between two of
    the sorted scores covers it however the scores are distributed. With few threshold samples no sample
    lies above it with enough certainty: then the upper end is infinite.
    """
    from scipy.special import bdtr

    ordered = np.sort(_threshold_scores(run))
    n, p, tail = len(ordered), share / 100, (1 - level) / 2
    below = bdtr(np.arange(n), n, p)  # P(at most k of n lie below the percentile)
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return (
        float(ordered[low - 1]) if low > 0 else -np.inf,
        float(ordered[high - 1]) if high <= n else np.inf,
    )


def _threshold_scores(run: Run) -> np.ndarray:
    scores = run.scores[run.is_threshold]
    observed = scores[~np.isnan(scores)]
    if not len(observed):
        raise IdentifyError(f"none of the {len(scores)} threshold samples was observed: there is no cutoff to find")
    return np.asarray(observed, dtype=np.float64)
