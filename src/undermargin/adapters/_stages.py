"""Logits after every stage of a fitted ensemble, linear in its stages: each stage adds its part to the one before."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Logits = npt.NDArray[np.floating[Any]]


def stages(model: Any, data: Any) -> Generator[Logits, None, None]:
    """Raw outputs after each stage: (samples, outputs), or (samples,) from a binary model.

    `data` holds the training samples, in the form that the model's `predict` takes.
    """
    return _library(model).read(model, data)


def has_stages(model: Any) -> bool:
    """Whether `stages` can read such a model once it is fitted."""
    return _library(model) is not _STAGED or hasattr(model, "staged_decision_function")


def default_rounds(model: Any) -> int:
    """Rounds after which such a model, at its library's own settings, has fitted few wrong labels."""
    return _library(model).rounds


def limit_stages(model: Any, most: int) -> None:
    """Let an estimator that is not fitted yet train no more stages than `most`."""
    given, library = model.get_params(), _library(model)
    name = next((name for name in library.parameters if given.get(name) is not None), library.parameters[0])
    if name in given or library is not _STAGED:  # a staged estimator of the user's own may have neither
        model.set_params(**{name: min(most, given.get(name) or most)})


def classes(model: Any) -> npt.NDArray[Any] | None:
    """The label of each column of logits; None: a native booster, whose columns are numbered 0..n-1."""
    found = getattr(model, "classes_", None)
    return np.asarray(found) if found is not None and len(found) else None


def widen(raw: Logits, columns: npt.NDArray[Any] | None, num_outputs: int) -> Logits:
    """A column for every output, (samples, num_outputs); a class without training samples gets the row's lowest."""
    if raw.ndim == 1 or raw.shape[1] == 1:
        raw = np.stack([np.zeros(len(raw), raw.dtype), raw.reshape(-1)], 1)
    if raw.shape[1] == num_outputs:
        return raw
    if columns is None or raw.shape[1] != len(columns):
        raise InputError(
            f"the model has {raw.shape[1]} outputs, expected {num_outputs}: the classes and, with threshold samples, "
            "the extra label. Train it on fold.labels with fold.num_outputs classes"
        )
    logits = np.repeat(raw.min(axis=1, keepdims=True), num_outputs, axis=1)
    logits[:, columns.astype(np.int64)] = raw
    return logits


def _xgboost(model: Any, data: Any) -> Generator[Logits, None, None]:
    import xgboost

    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    if '"dart"' in booster.save_config():
        raise InputError("XGBoost's dart rescales earlier trees in every round; rounds cannot be replayed. Use gbtree")
    matrix = data
    if not isinstance(data, xgboost.DMatrix):
        matrix = xgboost.DMatrix(data, missing=getattr(model, "missing", np.nan), enable_categorical=True)
    before = matrix.get_base_margin()
    try:
        for number in range(booster.num_boosted_rounds()):
            margins = booster.predict(matrix, output_margin=True, iteration_range=(number, number + 1))
            matrix.set_base_margin(margins)  # the next round adds its trees to these
            yield margins
    finally:
        matrix.set_base_margin(before)  # the matrix may be the user's; a copy takes longer than the rounds


def _lightgbm(model: Any, data: Any) -> Generator[Logits, None, None]:
    booster = getattr(model, "booster_", model)
    logits: Any = 0.0
    for number in range(booster.current_iteration()):
        logits = logits + booster.predict(data, raw_score=True, start_iteration=number, num_iteration=1)
        yield logits


def _catboost(model: Any, data: Any) -> Generator[Logits, None, None]:
    yield from model.staged_predict(data, prediction_type="RawFormulaVal")


def _staged(model: Any, data: Any) -> Generator[Logits, None, None]:
    yield from model.staged_decision_function(data)


@dataclass(frozen=True)
class Library:
    """How a library's models are read."""

    read: Callable[[Any, Any], Generator[Logits, None, None]]
    rounds: int  # measured by bench/rounds.py on letter and segment
    parameters: tuple[str, ...]  # names for the number of rounds; the first is set if none is


LIBRARIES = {
    "xgboost": Library(_xgboost, 15, ("n_estimators",)),
    "lightgbm": Library(_lightgbm, 15, ("n_estimators",)),
    "catboost": Library(_catboost, 45, ("iterations", "n_estimators", "num_boost_round", "num_trees")),
}
_STAGED = Library(_staged, 15, ("max_iter", "n_estimators"))


def _library(model: Any) -> Library:
    for base in type(model).__mro__:  # a user's subclass of XGBClassifier lives in a module of the user's own
        if (library := base.__module__.split(".")[0]) in LIBRARIES:
            return LIBRARIES[library]
    return _STAGED
