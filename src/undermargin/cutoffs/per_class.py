"""A cutoff for every class: small-loss reasoning holds within a class, not across classes (Gui et al. 2021)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from undermargin.tracking.run import Run

PRIOR_SAMPLES = 100  # a class of this size gets half its own cutoff, half the common one
MIN_SAMPLES = 10  # below, two components cannot be told apart at all


def per_class(run: Run, boundary: Callable[[Run], float]) -> npt.NDArray[np.float64]:
    """One cutoff a class, (classes,): its own, drawn to the common one the fewer samples it has."""
    assert run.labels is not None  # noqa: S101 - cutoffs.find has made sure
    common = boundary(run)
    num_classes = int(run.labels.max()) + 1
    cutoffs = np.full(num_classes, common)
    counts = np.bincount(run.labels[run.judged], minlength=num_classes)
    for label in np.flatnonzero(counts >= MIN_SAMPLES):
        own = boundary(replace(run, is_threshold=run.is_threshold | (run.labels != label)))
        if np.isfinite(own) and np.isfinite(common):
            trust = counts[label] / (counts[label] + PRIOR_SAMPLES)
            cutoffs[label] = trust * own + (1 - trust) * common
    return cutoffs
