"""Confident learning: remove the label issues that cleanlab finds in cross-validated probabilities, then retrain
(Northcutt et al. 2021)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from undermargin.errors import InputError
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

Labels = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConfidentLearning:
    """Number of folds, and the options passed to cleanlab; all defaults are cleanlab's."""

    num_folds: int = 5
    filter_by: str = "prune_by_noise_rate"  # any name that cleanlab's find_label_issues accepts
    rank_by: str = "self_confidence"  # any name that cleanlab's get_label_quality_scores accepts

    def fit(self, lesson: Lesson) -> Fitted:
        """Train once per fold on the other folds, then once without the flagged samples."""
        cleanlab_modules()  # fail before hours of training if it is missing
        labels = lesson.labels[lesson.rows]
        folds = stratified(labels, self.num_folds, seed=lesson.seed)
        probabilities = np.zeros((len(labels), lesson.num_classes))
        for number in range(folds.max() + 1):
            is_held_out = folds == number
            training, _ = replace(lesson, rows=lesson.rows[~is_held_out]).train(f"fold{number}")
            probabilities[is_held_out] = softmax(training.predict(lesson.rows[is_held_out]).astype(np.float64), axis=1)
        return trained_without(lesson, "confident_learning", self.verdicts(labels, probabilities))

    def verdicts(self, labels: Labels, probabilities: Values) -> Verdicts:
        """cleanlab's verdicts on labels (samples,), given out-of-sample probabilities (samples, classes)."""
        find, rank = cleanlab_modules()
        # cleanlab cannot estimate classes without samples
        present, own = np.unique(labels, return_inverse=True)
        shares = probabilities[:, present]
        shares = shares / shares.sum(1, keepdims=True).clip(np.finfo(float).tiny)
        if len(present) < 2:
            is_flagged, scores = np.zeros(len(labels), bool), np.ones(len(labels))
        else:
            is_flagged = np.asarray(find.find_label_issues(own, shares, filter_by=self.filter_by, n_jobs=1), bool)
            scores = np.asarray(rank.get_label_quality_scores(own, shares, method=self.rank_by), np.float64)
        return Verdicts(
            codes=np.where(is_flagged, FLAGGED, KEPT).astype(np.int8),
            scores=scores,
            excess=scores - scores.max(where=is_flagged, initial=0),  # cleanlab flags per class: there is no one cutoff
            judged_by=np.ones(len(labels), np.int16),
            labels=labels,
            about={
                "score": self.rank_by,
                "cutoff": {"name": self.filter_by, "description": "cleanlab's", "values": []},
                "notes": [],
            },
        )


def stratified(labels: Labels, num_folds: int, *, seed: int) -> Labels:
    """The fold in which each sample is held out, stratified by class: (samples,).

    >>> folds = stratified(np.array([0, 0, 0, 1, 1, 1]), 3, seed=0)
    >>> sorted(folds[:3].tolist()), sorted(folds[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    if not 2 <= num_folds <= len(labels):
        raise InputError(f"num_folds is {num_folds} for {len(labels)} samples, expected 2..{len(labels)}")
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), np.int64)
    folds[by_class] = np.arange(len(labels)) % num_folds
    return folds


def cleanlab_modules() -> tuple[Any, Any]:
    """The modules `cleanlab.filter` and `cleanlab.rank`."""
    try:
        from cleanlab import filter as find
        from cleanlab import rank
    except ImportError:
        raise InputError(
            'recipe confident_learning needs cleanlab, which is not installed; run pip install "undermargin[cleanlab]"'
        ) from None
    return find, rank
