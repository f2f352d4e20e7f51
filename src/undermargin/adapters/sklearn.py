"""scikit-learn: one detector around any classifier, and a callback for estimators that take callbacks.

A leaf: nothing else in undermargin imports this module.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin import Fold, Procedure, Run, Tracker, Verdicts, folds, identify
from undermargin.adapters._extras import require
from undermargin.errors import InputError

require("sklearn", "sklearn")

from sklearn.base import BaseEstimator, clone  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.utils import check_random_state, get_tags, indexable  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import (  # noqa: E402
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from undermargin.adapters._sklearn_methods import METHODS, IterationCallback, Training, find_method  # noqa: E402


class MislabelDetector(BaseEstimator):  # type: ignore[misc]
    """Finds mislabeled samples by training clones of a classifier on both folds of threshold samples.

    `estimator` is a classifier or a pipeline that ends with one; it is never fitted itself. `method` says where the
    margins come from: "passes" of `partial_fit` (SGDClassifier, MLPClassifier), "stages" of an ensemble (gradient
    boosting, AdaBoost, XGBoost, LightGBM, CatBoost), "iterations" of a solver (LogisticRegression), or
    "cross-validation" (any classifier): margins of models that did not train on the sample, which is not AUM.
    "auto" takes the first of these that the classifier allows, and `method_` says which.

    `epochs` is the number of passes, stages or iterations (default: 40 passes, up to 200 over fewer than 2,500
    samples; 15 stages, or 45 of CatBoost, but no more than the estimator has; all iterations of the solver). `cv` is
    for cross-validation only. `procedure` chooses the threshold samples (default: `Procedure.default`) and, unless a
    `cutoff` is given, the cutoff.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> y[:3] = 2
    >>> detector = MislabelDetector(LogisticRegression(max_iter=50)).fit(X, y)
    >>> detector.method_, sorted(detector.verdicts_.order[:3].tolist())
    ('iterations', [0, 1, 2])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "auto",
        epochs: int | None = None,
        cv: Any = 5,
        cutoff: Any = None,
        procedure: Procedure | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.epochs = epochs
        self.cv = cv
        self.cutoff = cutoff
        self.procedure = procedure
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MislabelDetector":  # noqa: N803
        """Train on both folds, judge every sample; X may be an array, a sparse matrix, a frame or a list of texts."""
        labels = self._take(X, y)
        (X,) = indexable(X)  # noqa: N806
        procedure = Procedure.default if self.procedure is None else self.procedure
        seed = self._seed()
        self.runs_: list[Run] = []
        self.estimators_: list[Any] = []  # what was trained, one per fold; empty after a cross-validation
        for fold in folds(labels, len(self.classes_), seed=seed, procedure=procedure):
            weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
            training = Training(X, fold.labels, fold.num_outputs, weights, self.epochs, self.cv, seed)
            self.runs_.append(self._run(training, fold, ids=_ids(X), skip_epochs=procedure.skip_epochs))
        self.verdicts_: Verdicts = identify(self.runs_, _cutoff(procedure) if self.cutoff is None else self.cutoff)
        self.scores_: npt.NDArray[np.floating[Any]] = self.verdicts_.scores
        return self

    def fit_predict(self, X: Any, y: Any, sample_weight: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
        """Fit, then 1 for samples that are kept and -1 for those that are flagged, as outlier detectors say it."""
        return np.where(self.fit(X, y, sample_weight).verdicts_.is_flagged, -1, 1)

    def _take(self, X: Any, y: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """Check what does not depend on the estimator, and number the classes."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: labels are what is checked")
        validate_data(self, X, skip_check_array=True)
        given = column_or_1d(y, warn=True)
        check_consistent_length(X, given)
        check_classification_targets(given)
        self.classes_, labels = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y holds {len(self.classes_)} class; a label can only be wrong among two or more")
        self.method_ = find_method(self.estimator) if self.method == "auto" else self.method
        if self.method_ not in METHODS:
            raise InputError(f"method is {self.method!r}, expected auto, {', '.join(METHODS)}")
        return labels.astype(np.int64)

    def _run(self, training: Training, fold: Fold, *, ids: Any, skip_epochs: int) -> Run:
        """Train on one fold while a tracker watches."""
        is_held_out = self.method_ == "cross-validation"
        tracker = Tracker(
            len(fold.labels),
            skip_epochs=0 if is_held_out else skip_epochs,
            suggest=fold.num_classes,
            probabilities=fold.num_classes,
        )
        estimator = _numbered(clone(self.estimator), self.classes_, training.seed)
        if isinstance(estimator, Pipeline) and not is_held_out:
            *steps, (_, last) = estimator.steps
            if steps:
                inputs = Pipeline(steps).fit_transform(training.X, training.labels)
                training = replace(training, X=inputs)
        else:
            last = estimator
        METHODS[self.method_](last, training, _observer(tracker, fold.labels))
        if not is_held_out:
            self.estimators_.append(estimator)
        run = tracker.run(fold, ids=ids, class_names=[str(name) for name in self.classes_])
        return replace(run, score="cross_validated_margin") if is_held_out else run

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class TrackerCallback(IterationCallback):
    """Feeds the iterations of a scikit-learn training to a tracker, for estimators with `set_callbacks` (1.9 or later).

    Of the estimators in scikit-learn 1.9, LogisticRegression with the solver lbfgs shows its model to callbacks.
    `labels` are the class numbers that the estimator is fitted on, such as `fold.labels`.
    """

    def __init__(self, tracker: Tracker, labels: npt.ArrayLike) -> None:
        super().__init__(_observer(tracker, np.asarray(labels)))
        self.tracker = tracker


def _observer(tracker: Tracker, labels: npt.NDArray[Any]) -> Any:
    """A function that shows the tracker the logits of all samples, which make an epoch."""
    batch = torch.from_numpy(labels.astype(np.int64)), torch.arange(len(labels))

    def observe(logits: npt.NDArray[Any]) -> None:
        with torch.enable_grad():  # nothing here needs a gradient, but a tracker warns where none could be had
            tracker.update(logits, *batch)
        tracker.end_epoch()

    return observe


def _numbered(estimator: Any, names: npt.NDArray[Any], seed: int) -> Any:
    """The estimator with class weights by number, and with the seed where it was given none."""
    numbers = {name: number for number, name in enumerate(names.tolist())}
    for name, value in estimator.get_params(deep=True).items():
        if name.split("__")[-1] == "random_state" and value is None:
            estimator.set_params(**{name: seed})
        if name.split("__")[-1] == "class_weight" and isinstance(value, Mapping):
            estimator.set_params(**{name: {numbers[key]: weight for key, weight in value.items()}})
    return estimator


def _ids(X: Any) -> list[Any] | None:  # noqa: N803
    """A pandas frame's or series' own index."""
    return list(X.index) if type(X).__module__.split(".")[0] == "pandas" and len(X.index) == _num_samples(X) else None


def _cutoff(procedure: Procedure) -> str:
    """The procedure's cutoff; P(mislabeled) was measured on networks, so estimators keep the rule before it."""
    return "auto" if procedure.cutoff == "probability" else procedure.cutoff
