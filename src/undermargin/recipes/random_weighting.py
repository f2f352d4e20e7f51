"""Random weights: a regulariser that knows nothing of noise (Ren et al. 2018, as their baseline)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step, weighted


class RectifiedNormal(Objective):
    """Each sample weighs max(normal, 0), drawn anew at every step; about half of a batch weighs nothing."""

    def weights(self, step: Step) -> Tensor:
        """Of the batch: (batch,)."""
        return _drawn(len(step.labels), step.generator)

    def loss(self, step: Step) -> Tensor:
        """The weighted mean of the cross-entropies."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        return weighted(losses, self.weights(step).to(losses.device))


class RectifiedNormalOfEpoch(RectifiedNormal):
    """Each sample weighs max(normal, 0), drawn anew at every epoch: for an epoch about half of them are left out."""

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Draw for all samples."""
        self.drawn = _drawn(len(training.labels), generator)

    def weights(self, step: Step) -> Tensor:
        """Of the batch: (batch,)."""
        return self.drawn[step.indices.cpu()]


def _drawn(number: int, generator: torch.Generator) -> Tensor:
    return torch.randn(number, generator=generator).clamp(min=0)


@dataclass(frozen=True)
class RandomWeighting:
    """Weights of a step, as in the authors' code; no settings."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train once."""
        return trained(lesson, RectifiedNormal())


@dataclass(frozen=True)
class RandomWeightingByEpoch:
    """Weights of an epoch, as the AUM paper's text says; no settings."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train once."""
        return trained(lesson, RectifiedNormalOfEpoch())
