"""Cutoffs for a noise rate that is known: as many samples are flagged as labels are wrong."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from undermargin.errors import IdentifyError
from undermargin.tracking.run import Run

Values = npt.NDArray[np.float64]


def lowest_share(run: Run, rate: float) -> float:
    """The score at and below which lies this share of the judged samples.

    Equal scores are on the same side of it: on the one that comes nearer to the share.

    >>> run = Run(scores=[5.0, 1.0, 4.0, 2.0, 3.0])
    >>> lowest_share(run, 0.4), bool(lowest_share(run, 0) < 1)
    (2.0, True)
    """
    return _lowest(run.scores[run.judged], rate)


def lowest_shares(run: Run, rates: Values) -> Values:
    """The same for every class by its own rate, (classes,): -inf where a class has no sample."""
    assert run.labels is not None  # noqa: S101 - cutoffs.find has made sure
    if run.labels.max() >= len(rates):
        raise IdentifyError(f"there are {len(rates)} class rates, but a label {run.labels.max()}; give one for each")
    return np.array([_lowest(run.scores[run.judged & (run.labels == label)], rate) for label, rate in enumerate(rates)])


def removed_shares(rates: Sequence[float], slack: float) -> Values:
    """What ranking the small losses within classes removes at these noise rates, (classes,) (Gui et al. 2021).

    A few more than are wrong, to be sure that wrong ones go: the rate and `slack` of it again, or, where that is less,
    the rate and `slack` of the right ones.

    >>> removed_shares([0.0, 0.4, 0.6], slack=0.2).round(2).tolist()
    [0.0, 0.48, 0.68]
    """
    wrong = np.asarray(rates, dtype=np.float64)
    return np.asarray(wrong + slack * np.minimum(wrong, 1 - wrong))


def check_rate(rate: float) -> None:
    """Raise for what is no share of wrong labels."""
    if not 0 <= rate < 1:
        raise IdentifyError(f"the rate is {rate:g}, expected a share from 0 to less than 1, such as 0.4")


def _lowest(scores: npt.NDArray[np.floating], rate: float) -> float:
    if not len(scores):
        return -np.inf
    number = round(rate * len(scores))
    if number == 0:  # just below all of them: nobody is flagged, and how far above they are still orders them
        return float(np.nextafter(scores.min(), -np.inf))
    last = np.partition(scores, number - 1)[number - 1]
    num_below, num_with = int((scores < last).sum()), int((scores <= last).sum())
    return float(last if num_with - number <= number - num_below else np.nextafter(last, -np.inf))
