"""Training on part of a data set, with the number of iterations kept."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.training.engine import Budget, Engine, Plan


def for_part(budget: Budget, num_kept: int, num_samples: int) -> Budget:
    """The budget of a training on part of the samples: smaller batches, so that the number of iterations is kept.

    The paper: removing a quarter turns a batch of 256 into one of 192.

    >>> for_part(Budget(epochs=300, batch_size=256), 750, 1000).batch_size
    192
    """
    if not num_kept:
        raise InputError(f"none of the {num_samples} samples is kept: there is nothing to train on")
    return replace(budget, batch_size=max(2, round(budget.batch_size * num_kept / num_samples)))


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
    """A classifier trained on the kept ones of `num_samples` samples, in as many steps as on all of them."""
    budget = for_part(budget, len(kept), num_samples)
    engine = plan.start(labels, num_classes, seed=seed, budget=budget, rows=kept)
    for epoch in range(budget.epochs):
        engine.run_epoch(epoch)
        end_epoch()
    return engine
