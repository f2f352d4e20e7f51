"""What a recipe's training step costs, as a multiple of the standard one's times its number of networks.

Every epoch of a recipe is timed right after an epoch of standard training on as many samples with as large batches;
the median of the ratios counts. Epochs before a recipe begins to do what it does (D2L, DY-Bootstrap) are cheap ones:
the slowest quarter is shown as well. What an epoch costs beside its steps weighs more here than on larger data.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from undermargin import noise, recipes
from undermargin.models.group import Group
from undermargin.recipes import RECIPES, Budget, Known
from undermargin.sources.source import load
from undermargin.training.engine import Observe
from undermargin.training.network import NetworkPlan, Training
from undermargin.training.plan import plan

NUM_IMAGES, BATCH, EPOCHS = 2560, 64, 4
LIMITS = {"dy_bootstrap": 1.8, "dy_bootstrap_gmm": 1.8}
LIMIT = 1.3


def measure() -> dict[str, Any]:
    """Print and return the ratios of every recipe."""
    rng = np.random.default_rng(0)
    true_labels = np.arange(NUM_IMAGES) % 10
    shades = 20 * true_labels[:, None, None, None]  # something to be learned
    images = (rng.integers(0, 60, (NUM_IMAGES, 32, 32, 3)) + shades).astype(np.uint8)
    labels = noise.uniform(true_labels, 0.2, 10, seed=0)
    known = Known(
        noise_rate=0.2,
        pattern="uniform",
        is_clean=labels == true_labels,
        trusted=np.arange(0, NUM_IMAGES, 4),
        true_labels=true_labels,
    )
    chosen = plan(load((images, labels)))
    assert isinstance(chosen, NetworkPlan)
    budget = Budget(EPOCHS, BATCH)

    @cache
    def standard(num_samples: int, batch_size: int) -> Training:
        alike = replace(budget, batch_size=batch_size)
        return chosen.start(labels, 10, seed=0, budget=alike, rows=np.arange(num_samples))

    found = {}
    for name in RECIPES:
        with _timed(standard) as ratios:
            recipes.fit((images, labels), recipe=name, budget=budget, known=known)
        slow = statistics.quantiles(ratios, n=4)[-1] if len(ratios) > 1 else ratios[0]
        found[name] = {"median": statistics.median(ratios), "slowest_quarter": slow, "num_epochs": len(ratios)}
        limit = LIMITS.get(name, LIMIT)
        print(
            f"{name:<24} {found[name]['median']:.2f}x standard a network and step "
            f"(slowest quarter from {slow:.2f}x; asked: at most {limit}x)"
        )
    return {"model": chosen.model, "batch": BATCH, "num_threads": torch.get_num_threads(), "ratios": found}


@contextmanager
def _timed(standard: Callable[[int, int], Training]) -> Iterator[list[float]]:
    """Ratios of every epoch that is run meanwhile to one of standard training, by network."""
    ratios: list[float] = []
    run_epoch = Training.run_epoch

    def timed(training: Training, epoch: int, observe: Observe | None = None) -> None:
        usual = standard(len(training.rows), training.budget.batch_size)
        seconds = []
        for one, number, watch in ((usual, 0, None), (training, epoch, observe)):
            started = time.perf_counter()
            run_epoch(one, number, watch)
            seconds.append(time.perf_counter() - started)
        networks = len(training.network.members) if isinstance(training.network, Group) else 1
        ratios.append(seconds[1] / seconds[0] / networks)

    Training.run_epoch = timed  # type: ignore[method-assign]
    try:
        yield ratios
    finally:
        Training.run_epoch = run_epoch  # type: ignore[method-assign]
