"""scan's cutoff: a sample must look mislabeled by every reading of the same scores.

The percentile of threshold samples asks: is this label more believable than one we made up? After a short training
the answer is no for many samples that are only hard, and it flags too much. Two Gaussians ask: to which of two groups
does this score belong? They find two groups even where there is one, and flag too much of clean data. Each errs where
the other does not, so the lower of the two cutoffs decides.

The 99th percentile of few threshold samples is the largest of them or the one behind it, and a single unlucky one moves
it far. So it is believed only up to where their mean and deviation, which all of them share in, put it.

With two classes threshold samples say nothing: a wrong label is always the same other class, which the network comes
to expect, while the extra label stays a surprise. There the Gaussians decide alone.
"""

from undermargin.cutoffs.mixtures import boundary_between_means
from undermargin.cutoffs.percentile import has_few, normal_percentile, percentile
from undermargin.tracking.run import Run


def auto(run: Run) -> tuple[float, str]:
    """The lowest of the readings, and which of them it is."""
    readings = _readings(run)
    lowest = min(readings, key=readings.__getitem__)
    if len(readings) == 1:
        return readings[lowest], "with two classes, threshold samples say little: the boundary of two Gaussians decides"
    return readings[lowest], f"{lowest} is the strictest reading here, so it decides"


def _readings(run: Run) -> dict[str, float]:
    """Cutoffs by what they are called."""
    readings = {"the boundary between two Gaussians": boundary_between_means(run)}
    if _num_classes(run) > 2:
        readings["the paper's percentile"] = percentile(run)
        if has_few(run):
            readings["the percentile by mean and deviation of few threshold samples"] = normal_percentile(run)
    return readings


def _num_classes(run: Run) -> int:
    assert run.labels is not None  # noqa: S101 - cutoffs.find has made sure
    return len(run.class_names) if run.class_names is not None else int(run.labels.max()) + 1
