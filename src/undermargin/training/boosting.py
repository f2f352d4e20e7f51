"""Gradient-boosted trees: a boosting round counts as an epoch, in which every sample is observed once.

The model is fitted in one call. Its staged predictions then give the logits after each round, at a cost that is linear
in the number of rounds; predicting with a growing model after every round would be quadratic.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor

from undermargin.training.engine import Budget, Logits, Observe, Rows

MAX_CATEGORIES = 255  # per column: the limit of scikit-learn's trees


class Boosting:
    """Gradient-boosted trees on a matrix, with nan for missing values; see `Engine`."""

    def __init__(
        self, matrix: npt.NDArray[np.float32], is_category: npt.NDArray[np.bool_], labels: Rows, num_outputs: int,
        *, seed: int, budget: Budget, rows: Rows | None,
    ) -> None:  # fmt: skip
        self.matrix, self.labels, self.num_outputs = matrix, labels, num_outputs
        self.rows = np.arange(len(labels)) if rows is None else rows
        self.trees = HistGradientBoostingClassifier(
            max_iter=budget.epochs,
            learning_rate=budget.learning_rate,
            l2_regularization=1.0,
            categorical_features=is_category if is_category.any() else None,
            early_stopping=False,
            random_state=seed,
        )
        self.next_round = 0

    @cached_property
    def rounds(self) -> Iterator[Logits]:
        """The logits after each round: (rows, outputs)."""
        self.trees.fit(self.matrix[self.rows], self.labels[self.rows])
        return (self._wide(raw) for raw in self.trees.staged_decision_function(self.matrix[self.rows]))

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """One boosting round, in which every sample is observed once."""
        while self.next_round <= epoch:  # a resumed training skips the rounds that were observed before
            logits = next(self.rounds)
            self.next_round += 1
        if observe is not None:
            tensors = (torch.from_numpy(values) for values in (logits, self.labels[self.rows], self.rows))
            with torch.enable_grad():
                observe(*tensors)

    def predict(self, rows: Rows) -> Logits:
        """Logits of these rows, which need not be part of the training set: (rows, outputs)."""
        return self._wide(self.trees.decision_function(self.matrix[rows]))

    def _wide(self, raw: npt.NDArray[np.float64]) -> Logits:
        """Logits with one column per output; scikit-learn returns one for two classes, none for absent classes."""
        if raw.ndim == 1:
            raw = np.stack([np.zeros_like(raw), raw], 1)
        logits = np.full((len(raw), self.num_outputs), raw.min() - 1, np.float32)
        logits[:, self.trees.classes_] = raw
        return logits

    def tensors(self) -> dict[str, Tensor]:
        """Empty: a resumed training fits the same trees again."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Nothing to restore."""


@dataclass(frozen=True)
class BoostingPlan:
    """Gradient-boosted trees on a matrix; see `Plan`."""

    matrix: npt.NDArray[np.float32]  # (samples, columns)
    is_category: npt.NDArray[np.bool_]  # (columns,)
    budget: Budget
    model: str = "boosted trees"

    def start(self, labels: Rows, num_outputs: int, *, seed: int, budget: Budget, rows: Rows | None = None) -> Boosting:
        """Start a training on these labels (samples,), restricted to `rows` if given."""
        return Boosting(self.matrix, self.is_category, labels, num_outputs, seed=seed, budget=budget, rows=rows)
