"""The result of a recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from torch import nn

from undermargin.errors import InputError
from undermargin.training.network import Training
from undermargin.verdicts import metrics
from undermargin.verdicts.record import Verdicts

Values = npt.NDArray[np.floating]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a recipe: a classifier and, where the recipe has them, scores, verdicts, weights or soft labels.

    `scores` maps names to the tracker's scores, and the recipe's name to its own score; low = suspicious.
    """

    training: Training
    scores: Mapping[str, Values] = field(default_factory=dict)  # each (samples,); nan = never observed
    verdicts: Verdicts | None = None
    weights: Values | None = None  # (samples,) final weight of each sample, from 0 to 1
    soft_labels: Values | None = None  # (samples, classes) final training targets
    notes: tuple[str, ...] = ()  # remarks that help to read the result
    test_rows: Rows = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # rows of the test set, after the training set

    @property
    def network(self) -> nn.Module:
        """The trained network; recipes with several networks return one module that contains them all."""
        return self.training.network

    def predict(self, rows: Rows) -> Values:
        """Logits of these rows: (rows, classes). The rows of the test set follow those of the training set."""
        return self.training.predict(rows)

    def test_error(self) -> float:
        """Share of test samples that are misclassified."""
        if not len(self.test_rows):
            raise InputError("there is no test set to evaluate on; pass test= to recipes.fit")
        labels = self.training.labels.cpu().numpy()[self.test_rows]
        return metrics.error(self.predict(self.test_rows).argmax(1), labels)
