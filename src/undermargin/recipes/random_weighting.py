"""Random sample weights: a regularizer that knows nothing about the noise (a baseline of Ren et al. 2018)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step, weighted


class RectifiedNormal(Objective):
    """Weights max(normal, 0), drawn at every step; about half of a batch gets weight 0."""

    def weights(self, step: Step) -> Tensor:
        """Weights of the batch: (batch,)."""
        return _drawn(len(step.labels), step.generator)

    def loss(self, step: Step) -> Tensor:
        """Weighted mean of the cross-entropies."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        return weighted(losses, self.weights(step).to(losses.device))


class RectifiedNormalOfEpoch(RectifiedNormal):
    """Weights max(normal, 0), drawn once per epoch; about half of the samples get weight 0 for the whole epoch."""

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Draw the weights of all samples."""
        self.drawn = _drawn(len(training.labels), generator)

    def weights(self, step: Step) -> Tensor:
        """Weights of the batch: (batch,)."""
        return self.drawn[step.indices.cpu()]


def _drawn(number: int, generator: torch.Generator) -> Tensor:
    return torch.randn(number, generator=generator).clamp(min=0)


@dataclass(frozen=True)
class RandomWeighting:
    """New weights at every step, as in the authors' code. No settings."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network."""
        return trained(lesson, RectifiedNormal())


@dataclass(frozen=True)
class RandomWeightingByEpoch:
    """New weights at every epoch, as in the text of the AUM paper. No settings."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network."""
        return trained(lesson, RectifiedNormalOfEpoch())
