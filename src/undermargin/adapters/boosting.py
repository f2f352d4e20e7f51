"""XGBoost, LightGBM and CatBoost: the rounds of a finished training are the epochs that a tracker watches.

The trees are replayed round by round, each adding its part to the raw outputs of the rounds before, so the cost is
linear in the rounds and the training is not touched. A leaf: nothing else in undermargin imports this module.
"""

from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin import Fold, Run, Tracker
from undermargin.adapters._extras import require
from undermargin.adapters._stages import LIBRARIES, classes, has_stages, stages, widen
from undermargin.errors import InputError

# Rounds to train, by library: later ones fit the wrong labels. Measured by bench/rounds.py at each library's defaults.
ROUNDS = MappingProxyType({name: library.rounds for name, library in LIBRARIES.items()})

if not any(find_spec(name) for name in ROUNDS):
    require("xgboost", "xgboost")  # any of the three would do; its error shows how extras are installed


def run(
    model: Any,
    data: Any,
    fold: Fold,
    *,
    rounds: int | None = None,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
) -> Run:
    """The run of a model that was trained on `fold.labels`, for `identify` and `Scan.of`; see `observe`."""
    tracker = Tracker(len(fold.labels), suggest=fold.num_classes, probabilities=fold.num_classes)
    observe(tracker, model, data, fold.labels, rounds=rounds)
    return tracker.run(fold, ids=ids, class_names=class_names)


def observe(tracker: Tracker, model: Any, data: Any, labels: npt.ArrayLike, *, rounds: int | None = None) -> None:
    """Show a tracker every round of a fitted model, or the first `rounds`; each round is an epoch.

    `model` comes from the native or the scikit-learn API; `data` are the training samples in the form that its
    `predict` takes (DMatrix, Pool, array, frame); `labels` (samples,) are the class numbers it was trained on.
    """
    if not has_stages(model):
        raise InputError(
            f"{type(model).__name__} is not a model of {', '.join(ROUNDS)}; see undermargin.adapters.sklearn"
        )
    trained_on = np.asarray(labels)
    if trained_on.dtype.kind not in "iu":
        raise InputError(f"labels hold {trained_on.dtype}, expected class numbers 0..n-1, such as fold.labels")
    columns, num_outputs = classes(model), int(trained_on.max(initial=0)) + 1
    batch = torch.from_numpy(trained_on.astype(np.int64)), torch.arange(len(trained_on))
    with (
        closing(stages(model, data)) as rounds_of_model,
        torch.enable_grad(),
    ):  # a tracker warns where gradients are off
        for raw in islice(rounds_of_model, rounds):
            tracker.update(raw if columns is None else widen(raw, columns, num_outputs), *batch)
            tracker.end_epoch()
