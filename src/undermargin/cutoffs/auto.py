"""scan's cutoff: a sample must look mislabeled by two readings of the same scores.

The percentile of threshold samples asks: is this label more believable than one we made up? After a short training
the answer is no for many samples that are only hard, and it flags too much. Two Gaussians ask: to which of two groups
does this score belong? They find two groups even where there is one, and flag too much of clean data. Each errs where
the other does not, so the lower of the two cutoffs decides.

With two classes threshold samples say nothing: a wrong label is always the same other class, which the network comes
to expect, while the extra label stays a surprise. There the Gaussians decide alone.
"""

from undermargin.cutoffs.mixtures import boundary_between_means
from undermargin.cutoffs.percentile import percentile
from undermargin.run import Run


def auto(run: Run) -> float:
    """The lower of the paper's cutoff and the boundary between two Gaussians; with two classes the latter alone."""
    groups = boundary_between_means(run)
    return groups if _num_classes(run) == 2 else min(groups, percentile(run))


def explain_auto(run: Run) -> str:
    """Which of the two readings decided, in a sentence."""
    if _num_classes(run) == 2:
        return "with two classes, threshold samples say little: the boundary between two Gaussians decides"
    if boundary_between_means(run) < percentile(run):
        return "the boundary between two Gaussians is stricter here than the paper's percentile, so it decides"
    return "the paper's percentile is stricter here than the boundary between two Gaussians, so it decides"


def _num_classes(run: Run) -> int:
    assert run.labels is not None  # noqa: S101 - cutoffs.find has made sure
    return len(run.class_names) if run.class_names is not None else int(run.labels.max()) + 1
