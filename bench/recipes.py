"""What a recipe's training step costs, as a multiple of the standard one's times its number of networks.

Every epoch of a recipe is timed right after an epoch of standard training on the same data; the median of the ratios
counts. Epochs before a recipe begins to do what it does (D2L, DY-Bootstrap) are its cheap ones: the slowest quarter is
shown as well.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from undermargin import noise, recipes
from undermargin.data.source import load
from undermargin.models.group import Group
from undermargin.recipes import RECIPES, Budget, Known
from undermargin.training.engine import Observe
from undermargin.training.network import NetworkPlan, Training
from undermargin.training.plan import plan

NUM_IMAGES, BATCH, EPOCHS = 1280, 64, 8
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
    standard = chosen.start(labels, 10, seed=0, budget=budget)
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
def _timed(standard: Training) -> Iterator[list[float]]:
    """Ratios of every epoch that is run meanwhile to one of standard training, by step and network."""
    ratios: list[float] = []
    steps = 0
    run_epoch, update = Training.run_epoch, Training._update

    def counted(training: Training, step: Any) -> None:
        nonlocal steps
        steps += 1
        update(training, step)

    def timed(training: Training, epoch: int, observe: Observe | None = None) -> None:
        nonlocal steps
        seconds = []
        for one, number, watch in ((standard, 0, observe), (training, epoch, observe)):
            steps, started = 0, time.perf_counter()
            # the tracker of the recipe must not see the standard training
            run_epoch(one, number, watch if one is training else None)
            seconds.append((time.perf_counter() - started) / steps)
        networks = len(training.network.members) if isinstance(training.network, Group) else 1
        ratios.append(seconds[1] / seconds[0] / networks * _share(standard, training))

    Training.run_epoch, Training._update = timed, counted  # type: ignore[method-assign]
    try:
        yield ratios
    finally:
        Training.run_epoch, Training._update = run_epoch, update  # type: ignore[method-assign]


def _share(standard: Training, training: Training) -> float:
    """Batches shrink where samples are removed: compare samples, not steps, then."""
    sizes = [len(one.rows) / -(-len(one.rows) // one.budget.batch_size) for one in (standard, training)]
    return sizes[0] / sizes[1]
