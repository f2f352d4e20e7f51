"""How long cells will take: what such cells took, or else a few timed training steps."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Results
from undermargin.paper.kinds import TURNS
from undermargin.paper.prepared import Prepared, network_plan
from undermargin.paper.shared import PLAIN, aum, stages
from undermargin.paper.study import Study
from undermargin.recipes import RECIPES
from undermargin.sources import official

SHAPES = {"digits": (8, 1), "mnist": (28, 1), "cifar10": (32, 3), "cifar100": (32, 3), "tiny-imagenet": (64, 3)}
TIMED_BATCHES = 4
TIMED_PIXELS = 2**20  # at most, so that photos take seconds, too
NUM_CLASSES = 10  # hardly changes how long a step takes


@dataclass(frozen=True)
class Work:
    """One training of a cell, or several alike."""

    name: str  # the same name is the same training, which is run once
    epochs: float  # of one network, on all training samples
    batch_size: int


def expected_seconds(cells: Sequence[Cell], results: Results) -> list[float | None]:
    """For every cell the seconds that it will take after those before it; None: the size of its data is not known.

    A training that several cells share counts for the first of them.
    """
    counted: set[str] = set()
    speeds: dict[tuple[str, ...], float] = {}
    found: list[float | None] = []
    for cell in cells:
        known, num_train = results.seconds(cell), _num_train(cell.study, results)
        parts = [part for part in work(cell) if part.name not in counted]
        counted |= {part.name for part in parts}
        if known is not None or num_train is None:
            found.append(known)
            continue
        seconds = 0.0
        for part in parts:
            name = (repr(replace(cell.study, num_train=None, num_trials=0)), str(part.batch_size))
            if name not in speeds:
                speeds[name] = samples_per_second(cell.study, part.batch_size)
            seconds += part.epochs * num_train / speeds[name]
        found.append(seconds)
    return found


def work(cell: Cell) -> list[Work]:
    """The trainings of a cell, those that it shares with others first."""
    study, method = cell.study, aum(cell)
    batch_size, fold = study.budget.batch_size, method.budget(study.budget)
    shared = [
        Work(f"{cell.folds_key} {stage}", fold.epochs, batch_size if stage in PLAIN else fold.batch_size)
        for stage in stages(cell)
    ]
    own = {  # in trainings of the whole length, or in folds
        "fit": (_trainings(cell), False),
        "cleaned": (1 - cell.rate, False),
        "removal": (1 - cell.option("share", 0.0), False),
        "identification": (0.0, False),
        "trajectories": (1.0, True),
        "architecture": (2.0, True),  # all samples, then two halves
        "extra class": (2.0, True),
        "cost": (2 * TURNS / fold.epochs, True),
    }
    number, is_fold = own[cell.kind]
    whole = fold if is_fold else study.budget
    return [*shared, Work(cell.key, number * whole.epochs, whole.batch_size)]


def _trainings(cell: Cell) -> float:
    """How many trainings of one network a recipe takes, besides the folds of AUM; removed samples cost nothing."""
    if cell.recipe in ("aum", "oracle"):
        return 1 - cell.rate
    number = re.match(r"[\d.]+", RECIPES[cell.recipe].trainings)
    return float(number[0]) if number else 1.0


def samples_per_second(study: Study, batch_size: int) -> float:
    """The speed of a few training steps on random images of the study's size."""
    side, channels = SHAPES.get(study.data, (224, 3))
    side = study.image_size or side
    number = max(2, min(TIMED_BATCHES * batch_size, TIMED_PIXELS // side**2))
    draw = np.random.default_rng(0)
    images = draw.integers(256, size=(number, side, side, channels), dtype=np.uint8)
    labels = draw.integers(NUM_CLASSES, size=number)
    prepared = Prepared(images, labels, labels, np.arange(number), [str(one) for one in range(NUM_CLASSES)], {})
    budget = replace(study.budget, batch_size=batch_size)
    training = network_plan(study, prepared).start(labels, NUM_CLASSES, seed=0, budget=budget)
    training.run_epoch(0)  # the first steps are slower
    started = time.perf_counter()
    training.run_epoch(1)
    return number / (time.perf_counter() - started)


def _num_train(study: Study, results: Results) -> int | None:
    """How many training samples a study has; of a whole set, as many as are found."""
    if study.num_train is not None:
        return study.num_train
    return official.found(results.root)[study.data].counts.get("train")
