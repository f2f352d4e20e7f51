"""The table of cutoffs: from a run's scores to the number at and below which a sample is flagged.

A cutoff decides. It does not depend on how a score was computed, so every score can be paired with every cutoff. One
row, `probability`, judges all runs together instead, from the mean probabilities they hold.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs.auto import auto
from undermargin.cutoffs.mixtures import beta_boundary, boundary_between_means, gaussian_boundary
from undermargin.cutoffs.per_class import per_class
from undermargin.cutoffs.percentile import percentile
from undermargin.cutoffs.probability import Judgment, judge
from undermargin.cutoffs.rates import check_rate, lowest_share, lowest_shares, removed_shares
from undermargin.errors import IdentifyError
from undermargin.plugins import Table
from undermargin.tracking.run import Run

Values = npt.NDArray[np.float64]

RATE = "rate:"  # what a name begins with that ends with a noise rate


class Found(NamedTuple):
    """What a cutoff found in one run: a number, or one per class, and why in a sentence."""

    value: float | Values
    reason: str = ""


@dataclass(frozen=True)
class Cutoff:
    """One row of CUTOFFS: `find(run)` gives one number or one per class, with a reason if it has one to give.

    A row with `judge` gives log odds for every sample from all runs together, and has no `find`.
    """

    find: Callable[[Run], float | Values | tuple[float | Values, str]] | None
    description: str
    paper: str
    needs_threshold: bool = False
    needs_labels: bool = False
    is_strict: bool = False  # flagged below the cutoff only, not at it
    share: float | None = None  # the percentile of the threshold samples, from 0 to 100, for rules that use one
    judge: Callable[[Sequence[Run]], Judgment] | None = None


def by_percentile(share: float, *, is_strict: bool = False) -> Cutoff:
    """The paper's rule with any percentile."""
    ordinal = f"{share:g}{_suffix(share)} percentile of the threshold samples"
    return Cutoff(
        partial(percentile, share=share),
        f"the authors' code: strictly below the {ordinal}" if is_strict else ordinal,
        "Pleiss et al. 2020",
        needs_threshold=True,
        is_strict=is_strict,
        share=share,
    )


def _suffix(number: float) -> str:
    """What makes an ordinal of a number.

    >>> [f"{number:g}{_suffix(number)}" for number in (99, 92, 11, 81, 99.5)]
    ['99th', '92nd', '11th', '81st', '99.5th']
    """
    is_teen = number % 100 in (11, 12, 13)
    return "th" if is_teen else {1.0: "st", 2.0: "nd", 3.0: "rd"}.get(number % 10, "th")


def by_rate(rate: float) -> Cutoff:
    """Flags the share `rate` of lowest scores, for a noise rate that is known: with losses, the small-loss rule.

    Of two runs each flags so many; what only one of them flags is kept.
    """
    check_rate(rate)
    return Cutoff(partial(lowest_share, rate=rate), f"the lowest {rate:.4g} of the scores", "Han et al. 2018")


def by_class_rates(rates: Sequence[float], *, slack: float = 0.2) -> Cutoff:
    """The lowest scores within every class, by its own noise rate `rates[label]` and a little more."""
    for rate in rates:
        check_rate(rate)
    removed = removed_shares(rates, slack)
    return Cutoff(
        partial(lowest_shares, rates=removed),
        f"the lowest of every class, from {removed.min():.4g} to {removed.max():.4g} of its scores",
        "Gui et al. 2021",
        needs_labels=True,
    )


CUTOFFS: Mapping[str, Cutoff] = Table(
    "undermargin.cutoffs",
    Cutoff,
    {
        "paper": by_percentile(99),
        "reference": by_percentile(99, is_strict=True),
        "probability": Cutoff(
            None,
            "flagged when the label is more likely wrong than right, by held-out predictions of threshold samples",
            "",
            needs_threshold=True,
            needs_labels=True,
            judge=judge,
        ),
        "auto": Cutoff(
            auto,
            "version 0.1's default: the lower of the paper's percentile, smoothed when there are few threshold "
            "samples, and the boundary between two Gaussians",
            "",
            needs_threshold=True,
            needs_labels=True,
        ),
        "gaussian": Cutoff(gaussian_boundary, "where two fitted Gaussians are equally likely", "Li et al. 2020"),
        "beta": Cutoff(beta_boundary, "where two fitted beta distributions are equally likely", "Arazo et al. 2019"),
        "per_class": Cutoff(
            partial(per_class, boundary=boundary_between_means),
            "two Gaussians for every class, shrunk to the common cutoff where a class is small",
            "Gui et al. 2021",
            needs_labels=True,
        ),
    },
)


def choose(cutoff: "str | float | Cutoff", *, share: float | None = None) -> Cutoff:
    """A row of the table by name, "rate:0.4" for `by_rate(0.4)`, a number as it is, or a Cutoff of one's own.

    `share` is another percentile.
    """
    row = _named(cutoff) if isinstance(cutoff, str) else cutoff
    if share is not None:
        if not isinstance(row, Cutoff) or row.share is None:
            able = ", ".join(name for name, one in CUTOFFS.items() if one.share is not None)
            raise IdentifyError(f"cutoff {cutoff!r} has no percentile to change; these have one: {able}")
        if not 0 < share <= 100:
            raise IdentifyError(f"percentile is {share}, expected more than 0 and at most 100")
        return by_percentile(share, is_strict=row.is_strict)
    if isinstance(row, Cutoff):
        return row
    if not isinstance(row, (int, float, np.number)) or isinstance(row, bool) or not math.isfinite(row):
        raise IdentifyError(f"cutoff is {row!r}, expected a name, a finite number or a Cutoff")
    return Cutoff(lambda run: float(row), f"the number {row:g}", "")  # noqa: ARG005


def _named(name: str) -> Cutoff:
    if name in CUTOFFS:
        return CUTOFFS[name]
    if name.startswith(RATE):
        try:
            return by_rate(float(name.removeprefix(RATE)))
        except ValueError:
            raise IdentifyError(f"cutoff is {name!r}, expected a share behind the colon, such as rate:0.4") from None
    raise IdentifyError(f"there is no cutoff {name!r}; choose from {', '.join(CUTOFFS)}, rate:0.4, or give a number")


def find(cutoff: Cutoff, run: Run, *, name: str = "this cutoff") -> Found:
    """Apply a cutoff to a run, after making sure that the run has what the cutoff needs."""
    if cutoff.find is None:
        raise IdentifyError(f"{name} judges all runs together and has no value for one of them; use identify()")
    if cutoff.needs_threshold and not run.has_threshold:
        able = ", ".join(key for key, row in CUTOFFS.items() if not row.needs_threshold)
        raise IdentifyError(
            f"the run has no threshold samples, which {name} needs. Train with folds(), or choose a cutoff that "
            f"needs none: {able}"
        )
    if cutoff.needs_labels and run.labels is None:
        raise IdentifyError(f"the run has no labels, which {name} needs; pass a fold to tracker.run(fold)")
    if not run.judged.any():
        raise IdentifyError(f"none of the {run.num_samples} samples can be judged: no score, or threshold samples only")
    found = cutoff.find(run)
    value, reason = found if isinstance(found, tuple) else (found, "")
    # a cutoff at minus infinity flags no sample; just below all scores does the same, and distances still order them
    lowest = np.nextafter(run.scores[run.judged].min(), -np.inf)
    finite = np.where(np.isneginf(value), lowest, value)
    return Found(finite if isinstance(value, np.ndarray) else float(finite), reason)
