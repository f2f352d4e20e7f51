"""What a recipe made of a noisy training set."""

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
    """A classifier, and where the recipe has them, what it thinks of the samples it was trained on.

    `scores` hold what the tracker saw, by name, and the recipe's own under its own name; low = suspicious.
    """

    training: Training
    scores: Mapping[str, Values] = field(default_factory=dict)  # each (samples,); nan = never observed
    verdicts: Verdicts | None = None
    weights: Values | None = None  # (samples,) how much each counted in the end, from 0 to 1
    soft_labels: Values | None = None  # (samples, classes) what the recipe took for the labels in the end
    notes: tuple[str, ...] = ()  # what somebody should know who reads the result
    test_rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64))  # behind the training samples

    @property
    def network(self) -> nn.Module:
        """The classifier itself; of several networks, one module that holds them all."""
        return self.training.network

    def predict(self, rows: Rows) -> Values:
        """Logits of these samples, the test set's behind the training set's: (rows, classes)."""
        return self.training.predict(rows)

    def test_error(self) -> float:
        """Share of the test samples that are classified wrongly."""
        if not len(self.test_rows):
            raise InputError("there is no test set; pass test= to fit")
        labels = self.training.labels.cpu().numpy()[self.test_rows]
        return metrics.error(self.predict(self.test_rows).argmax(1), labels)
