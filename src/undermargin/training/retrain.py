"""Train again on part of a data set, with the number of iterations kept."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.training.engine import Budget, Engine, Plan


def retrain(
    plan: Plan,
    labels: npt.NDArray[np.int64],
    kept: npt.NDArray[np.int64],
    *,
    num_samples: int,
    num_classes: int,
    budget: Budget,
    seed: int,
    end_epoch: Callable[[], None] = lambda: None,
) -> Engine:
    """A classifier trained on the kept ones of `num_samples` samples alone.

    The batch size shrinks with the data, so that it takes as many steps as with all of them (paper: removing
    a quarter turns a batch of 256 into one of 192).
    """
    if not len(kept):
        raise InputError(f"none of the {num_samples} samples is kept: there is nothing to train on")
    budget = replace(budget, batch_size=max(2, round(budget.batch_size * len(kept) / num_samples)))
    engine = plan.start(labels, num_classes, seed=seed, budget=budget, rows=kept)
    for epoch in range(budget.epochs):
        engine.run_epoch(epoch)
        end_epoch()
    return engine
