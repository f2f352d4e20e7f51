"""The ways to get logits out of a scikit-learn estimator: one function per way, and the way that fits an estimator.

Every function trains the estimator it is given and passes logits of all samples, (samples, outputs), to `observe`:
after every pass, stage or iteration of one training; or once, from models that did not train on the sample.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from undermargin.adapters._stages import classes, default_rounds, has_stages, limit_stages, stages, widen
from undermargin.errors import InputError

Logits = npt.NDArray[np.floating[Any]]
Observe = Callable[[Logits], None]

PASSES, MOST_PASSES, SHOWN = 40, 200, 100_000  # few samples are passed over more often, until so many were shown
FLOOR = 0.01  # added to cross-validated probabilities: a forest's are often zero, which has no logarithm


@dataclass(frozen=True)
class Training:
    """What an estimator is trained on in one fold, and for how long."""

    X: Any  # (samples, features), in whatever form the estimator takes
    labels: npt.NDArray[np.int64]  # (samples,) with the extra label where the fold says so
    num_outputs: int
    weights: npt.NDArray[Any] | None = None
    epochs: int | None = None
    cv: Any = 5
    seed: int = 0

    def weights_for(self, estimator: Any, rows: Any = slice(None)) -> dict[str, Any]:
        """The sample weights, under the name that the estimator's `fit` knows them by."""
        if self.weights is None:
            return {}
        if isinstance(estimator, Pipeline):
            return {f"{estimator.steps[-1][0]}__sample_weight": self.weights[rows]}
        if not has_fit_parameter(estimator, "sample_weight"):
            raise InputError(f"{type(estimator).__name__}.fit takes no sample_weight; choose an estimator that does")
        return {"sample_weight": self.weights[rows]}


def watch_passes(estimator: Any, training: Training, observe: Observe) -> None:
    """Train by `partial_fit`, and observe after every pass over the samples."""
    if getattr(estimator, "early_stopping", False):
        estimator.set_params(early_stopping=False)  # partial_fit refuses it, since it makes a single pass
    if isinstance(getattr(estimator, "random_state", None), int):
        # a number would start every pass with the same order of samples, which `fit` does not
        estimator.set_params(random_state=np.random.RandomState(estimator.random_state))
    for epoch in range(_passes(len(training.labels)) if training.epochs is None else training.epochs):
        named = {"classes": np.arange(training.num_outputs)} if epoch == 0 else {}
        estimator.partial_fit(training.X, training.labels, **named, **training.weights_for(estimator))
        observe(_logits(estimator, training.X, training.num_outputs))


def _passes(num_samples: int) -> int:
    """How often to pass over the samples by default: 40 times, and up to 200 times where there are few."""
    return max(PASSES, min(MOST_PASSES, SHOWN // num_samples))


def watch_stages(estimator: Any, training: Training, observe: Observe) -> None:
    """Train an ensemble once, for no more stages than are observed, and observe it after every one of them."""
    most = default_rounds(estimator) if training.epochs is None else training.epochs
    limit_stages(estimator, most)
    estimator.fit(training.X, training.labels, **training.weights_for(estimator))
    for raw in islice(stages(estimator, training.X), most):
        observe(widen(raw, classes(estimator), training.num_outputs))


def watch_iterations(estimator: Any, training: Training, observe: Observe) -> None:
    """Train once, and observe after every iteration of the solver, through the protocol of `sklearn.callback`."""
    if training.epochs is not None:
        estimator.set_params(max_iter=training.epochs)
    estimator.set_callbacks(
        IterationCallback(lambda raw: observe(widen(raw, classes(estimator), training.num_outputs)))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is watched is the way there
        estimator.fit(training.X, training.labels, **training.weights_for(estimator))
    estimator.set_callbacks()


def watch_held_out(estimator: Any, training: Training, observe: Observe) -> None:
    """Observe every sample once, with the model of a cross-validation that did not train on it."""
    splitter = check_cv(training.cv, training.labels, classifier=True)
    if isinstance(training.cv, int):
        splitter = StratifiedKFold(training.cv, shuffle=True, random_state=training.seed)
    logits = np.full((len(training.labels), training.num_outputs), np.nan)
    for train, test in splitter.split(training.X, training.labels):
        model = clone(estimator)
        weights = training.weights_for(model, train)
        model.fit(_safe_indexing(training.X, train), training.labels[train], **weights)
        logits[test] = _logits(model, _safe_indexing(training.X, test), training.num_outputs, floor=FLOOR)
    observe(logits)


METHODS: dict[str, Callable[[Any, Training, Observe], None]] = {
    "passes": watch_passes,
    "stages": watch_stages,
    "iterations": watch_iterations,
    "cross-validation": watch_held_out,
}


def find_method(estimator: Any) -> str:
    """The first way of METHODS that this estimator, or the last step of this pipeline, allows."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if has_stages(last):
        return "stages"
    if hasattr(last, "partial_fit"):
        return "passes"
    # of the estimators that take callbacks, the only one that shows them its model between iterations
    has_iterations = isinstance(last, LogisticRegression) and last.solver == "lbfgs" and hasattr(last, "set_callbacks")
    return "iterations" if has_iterations else "cross-validation"


class IterationCallback:
    """Passes on the logits of all training samples after every iteration (protocol `sklearn.callback.FitCallback`)."""

    def __init__(self, observe: Observe) -> None:
        self.observe = observe

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to put away."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing has been learned yet."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, X: Any = None, fitted_estimator: Any = None) -> None:  # noqa: ARG002, N803
        """Observe, where the task is an iteration: a leaf that left a model."""
        if fitted_estimator is not None and context.max_subtasks == 0:
            self.observe(fitted_estimator.decision_function(X))


def _logits(estimator: Any, X: Any, num_outputs: int, *, floor: float = 0.0) -> Logits:  # noqa: N803
    """Raw outputs where the estimator has them, else logarithms of its probabilities, which have the same margins."""
    if getattr(estimator, "decision_function_shape", None) == "ovo":
        raise InputError("decision_function_shape='ovo' gives one output per pair of classes; expected 'ovr'")
    if hasattr(estimator, "decision_function"):
        raw = np.asarray(estimator.decision_function(X))
    elif hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X))
        raw = np.log(np.maximum(probabilities + floor, np.finfo(probabilities.dtype).tiny))
    else:
        raise InputError(
            f"{type(estimator).__name__} has neither decision_function nor predict_proba, so there are no margins; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV, or choose another classifier"
        )
    return widen(raw, classes(estimator), num_outputs)
