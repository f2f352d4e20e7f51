"""D2L: once the dimension of the features starts to rise, which signals memorization, labels are mixed with predictions
(Ma et al. 2018)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.agreement import agreement
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, watched
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step


@dataclass(frozen=True)
class D2l:
    """How the dimension is measured, and which rise counts as the turning point."""

    earliest: float = 40 / 120  # share of the training before the search for the turning point: the authors' (CIFAR-10)
    window: int = 5  # number of preceding epochs to compare with
    num_deviations: float = 2.0  # how many standard deviations above their mean the dimension must be
    num_neighbors: int = 20
    together: int = 128  # group size: neighbors are searched within a group
    num_groups: int = 10
    # weights of cross-entropy and reverse cross-entropy before the turning point; None: cross-entropy only.
    # The authors' code since October 2019 uses (0.1, 1) for CIFAR-10 and (6, 0.1) for CIFAR-100
    symmetric: tuple[float, float] | None = None

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network."""
        interpolation = Interpolation(self, lesson.budget.epochs)
        training, tracker = lesson.train(objective=interpolation)
        scores = watched(lesson, tracker) | {"d2l": agreement(lesson, training)}
        turn = interpolation.turn
        if turn is None:
            return Fitted(training, scores, notes=("no turning point was found; the labels were used unchanged",))
        logits, labels = torch.from_numpy(training.predict(lesson.rows)), torch.from_numpy(lesson.labels[lesson.rows])
        soft_labels = interpolated(logits, labels, interpolation.trust).double().numpy()
        note = f"the turning point was found before epoch {turn + 1} of {lesson.budget.epochs}"
        return Fitted(training, scores, soft_labels=soft_labels, notes=(note,))


class Interpolation(Objective):
    """Cross-entropy; from the turning point on, labels are mixed with predicted classes."""

    def __init__(self, settings: D2l, epochs: int) -> None:
        self.settings = settings
        self.epochs = epochs
        self.dimensions: list[float] = []  # at the start of each epoch
        self.turn: int | None = None  # the first epoch with mixed labels
        self.trust = 1.0  # weight of the labels

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:
        """Measure the dimension and check for the turning point."""
        measured = self._measured(training, generator)
        if not measured > 0:  # nan or not a valid dimension
            measured = self.dimensions[-1] if self.dimensions else math.nan
        self.dimensions = [*self.dimensions[:epoch], measured]
        self._decide()

    def _measured(self, training: Training, generator: torch.Generator) -> float:
        # draw from a copy of the generator, so that the training itself draws the same numbers as a standard one
        drawn = torch.Generator().set_state(generator.get_state())
        size, rows = self.settings.together, training.rows
        chosen = rows[torch.randperm(len(rows), generator=drawn)[: size * self.settings.num_groups]]
        groups = torch.split(training.features(chosen.numpy()), size)
        whole = [group for group in groups if len(group) == size] or [groups[0]]
        found = torch.cat([local_dimensions(group, self.settings.num_neighbors) for group in whole])
        return float(found[found.isfinite()].mean())

    def _decide(self) -> None:
        earliest = int(self.settings.earliest * self.epochs)
        self.turn = turning_point(self.dimensions, earliest, self.settings.window, self.settings.num_deviations)
        if self.turn is not None:
            passed = (len(self.dimensions) - 1) / self.epochs
            self.trust = math.exp(-passed * self.dimensions[-1] / np.nanmin(self.dimensions))

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch."""
        if self.turn is not None:
            return F.cross_entropy(step.outputs, interpolated(step.outputs.detach(), step.labels, self.trust))
        if self.settings.symmetric is not None:
            return symmetric_loss(step.outputs, step.labels, *self.settings.symmetric)
        return F.cross_entropy(step.outputs, step.labels)

    def tensors(self) -> dict[str, Tensor]:
        """The dimensions, for a checkpoint; everything else is derived from them."""
        return {"dimensions": torch.tensor(self.dimensions, dtype=torch.float64)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the dimensions and what is derived from them."""
        self.dimensions = tensors["dimensions"].tolist()
        self._decide()


def local_dimensions(features: Tensor, num_neighbors: int) -> Tensor:
    """Local intrinsic dimension at every sample, from the distances to its nearest neighbors.

    (samples, features) -> (samples,); infinite or nan where all these distances are equal.
    """
    num_neighbors = min(num_neighbors, len(features) - 1)
    distances = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = distances.fill_diagonal_(torch.inf).topk(num_neighbors, largest=False).values  # sorted
    return -num_neighbors / (nearest / nearest[:, -1:] + 1e-8).log().sum(1)


def turning_point(dimensions: Sequence[float], earliest: int, window: int, num_deviations: float) -> int | None:
    """The first epoch, from `earliest + window` on, whose dimension is clearly above those of the epochs before it.

    >>> turning_point([9, 5, 4, 3, 2, 2, 9, 9], earliest=1, window=3, num_deviations=2)
    6
    """
    for epoch in range(earliest + window, len(dimensions)):
        before = np.array(dimensions[epoch - window : epoch])
        if dimensions[epoch] - before.mean() > num_deviations * before.std():
            return epoch
    return None


def interpolated(logits: Tensor, labels: Tensor, trust: float) -> Tensor:
    """trust x label + (1 - trust) x predicted class, one-hot: (batch, classes), (batch,) -> (batch, classes)."""
    given, predicted = (F.one_hot(classes, logits.shape[1]).float() for classes in (labels, logits.argmax(1)))
    return trust * given + (1 - trust) * predicted


def symmetric_loss(logits: Tensor, labels: Tensor, forward: float, reverse: float) -> Tensor:
    """Weighted sum of cross-entropy and reverse cross-entropy, with log 0 replaced by log 1e-4, over the batch."""
    probabilities = logits.softmax(1).gather(1, labels[:, None])[:, 0]
    return forward * F.cross_entropy(logits, labels) - reverse * math.log(1e-4) * (1 - probabilities).mean()
