"""What watching costs: each adapter's training with a tracker, over the same training without, in one run.

    OMP_NUM_THREADS=1 python -m bench.adapters_estimators [name ...]

Ratios of processor seconds on the examples' digits, the median of several pairs. Goal: 1.02, boosting 1.15.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from undermargin import Fold, Procedure, Tracker, folds
from undermargin.adapters import boosting

PAIRS = 7
GOAL, BOOSTING_GOAL = 1.02, 1.15
Train = Callable[[], Any]


def data() -> tuple[Any, Fold]:
    """Digits, and the first fold of their labels."""
    x, labels = load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), folds(labels, 10, procedure=Procedure.default)[0]


def sklearn_mlp() -> tuple[Train, Train]:
    """Twenty passes of `partial_fit`."""
    from sklearn.neural_network import MLPClassifier

    x, fold = data()

    def plain() -> None:
        network = MLPClassifier(random_state=np.random.RandomState(0))
        for epoch in range(20):
            network.partial_fit(x, fold.labels, **({"classes": np.arange(11)} if epoch == 0 else {}))

    return plain, _detector_fold(MLPClassifier(random_state=0), "passes", 20)


def sklearn_logistic() -> tuple[Train, Train]:
    """All iterations of the solver."""
    from sklearn.linear_model import LogisticRegression

    x, fold = data()
    estimator = LogisticRegression(max_iter=100)
    return lambda: clone(estimator).fit(x, fold.labels), _detector_fold(estimator, "iterations", None)


def sklearn_hist() -> tuple[Train, Train]:
    """Fifteen stages of gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, fold = data()
    estimator = HistGradientBoostingClassifier(max_iter=15)
    return lambda: clone(estimator).fit(x, fold.labels), _detector_fold(estimator, "stages", 15)


def _detector_fold(estimator: Any, method: str, epochs: int | None) -> Train:
    """What the detector does in one fold."""
    from undermargin.adapters._sklearn_methods import METHODS, Training
    from undermargin.adapters.sklearn import _observer

    x, fold = data()

    def watched() -> None:
        training = Training(x, fold.labels, fold.num_outputs, epochs=epochs)
        METHODS[method](clone(estimator), training, _observer(Tracker(len(x), suggest=10), fold.labels))

    return watched


def _boosting(train: Callable[[Any, Fold], tuple[Any, Any]]) -> tuple[Train, Train]:
    x, fold = data()
    return lambda: train(x, fold), lambda: boosting.run(*train(x, fold), fold)


def xgboost_native() -> tuple[Train, Train]:
    """`xgboost.train` on a DMatrix."""
    import xgboost

    def train(x: Any, fold: Fold) -> tuple[Any, Any]:
        matrix = xgboost.DMatrix(x, label=fold.labels)
        settings = {"objective": "multi:softprob", "num_class": 11, "nthread": 1}
        return xgboost.train(settings, matrix, boosting.ROUNDS["xgboost"]), matrix

    return _boosting(train)


def lightgbm_native() -> tuple[Train, Train]:
    """`lightgbm.train` on an array."""
    import lightgbm

    def train(x: Any, fold: Fold) -> tuple[Any, Any]:
        settings = {"objective": "multiclass", "num_class": 11, "num_threads": 1, "verbosity": -1}
        return lightgbm.train(settings, lightgbm.Dataset(x, fold.labels), boosting.ROUNDS["lightgbm"]), x

    return _boosting(train)


def catboost_sklearn() -> tuple[Train, Train]:
    """`CatBoostClassifier.fit` on an array."""
    import catboost

    def train(x: Any, fold: Fold) -> tuple[Any, Any]:
        settings = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoostClassifier(iterations=boosting.ROUNDS["catboost"], **settings)
        return model.fit(x, fold.labels), x

    return _boosting(train)


def keras() -> tuple[Train, Train]:
    """Five epochs of `fit`."""
    import keras

    from undermargin.adapters.keras import indexed, watch

    x, fold = data()

    def train(is_watched: bool) -> None:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(11)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
        if is_watched:
            callbacks, y = [watch(model, Tracker(len(x)))], indexed(fold.labels)
        else:
            callbacks, y = [], fold.labels
        model.fit(x, y, batch_size=64, epochs=5, verbose=0, callbacks=callbacks)

    return lambda: train(False), lambda: train(True)


def skorch() -> tuple[Train, Train]:
    """Five epochs of `fit`."""
    from skorch import NeuralNetClassifier
    from torch import nn

    from undermargin.adapters.skorch import INDEXED, TrackerCallback

    x, fold = data()

    def train(is_watched: bool) -> None:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 11))
        more = {"callbacks": [TrackerCallback(Tracker(len(x)))], **INDEXED} if is_watched else {}
        settings = {"train_split": None, "max_epochs": 5, "lr": 0.5, "batch_size": 64, "verbose": 0}
        NeuralNetClassifier(module, criterion=nn.CrossEntropyLoss, **settings, **more).fit(x, fold.labels)

    return lambda: train(False), lambda: train(True)


ADAPTERS: dict[str, tuple[Callable[[], tuple[Train, Train]], float]] = {
    "sklearn_mlp": (sklearn_mlp, GOAL),
    "sklearn_logistic": (sklearn_logistic, GOAL),
    "sklearn_hist": (sklearn_hist, BOOSTING_GOAL),
    "xgboost": (xgboost_native, BOOSTING_GOAL),
    "lightgbm": (lightgbm_native, BOOSTING_GOAL),
    "catboost": (catboost_sklearn, BOOSTING_GOAL),
    "keras": (keras, GOAL),
    "skorch": (skorch, GOAL),
}


def measure(names: list[str] | None = None) -> dict[str, float]:
    """The ratio of each adapter; prints a line for each."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ratios = {}
    for name in names or list(ADAPTERS):
        make, goal = ADAPTERS[name]
        plain, watched = make()
        plain(), watched()  # imports, caches
        pairs = [(_seconds(plain), _seconds(watched)) for _ in range(PAIRS)]
        ratios[name] = round(median(after / before for before, after in pairs), 3)
        seconds = median(before for before, _ in pairs)
        print(f"{name:17} {ratios[name]:.3f}  (goal {goal:.2f}; {seconds:.2f} s without)", flush=True)
    return ratios


def _seconds(train: Train) -> float:
    started = time.process_time()
    train()
    return time.process_time() - started


if __name__ == "__main__":
    measure(sys.argv[1:])
