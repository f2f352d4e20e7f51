"""Random weights: a regulariser that knows nothing of noise (Ren et al. 2018, as their baseline)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained
from undermargin.training.objective import Objective, Step, weighted


class RectifiedNormal(Objective):
    """Each sample weighs max(normal, 0), drawn anew at every step; about half of a batch weighs nothing."""

    def loss(self, step: Step) -> Tensor:
        """The weighted mean of the cross-entropies."""
        weights = torch.randn(len(step.labels), generator=step.generator).clamp(min=0).to(step.outputs.device)
        return weighted(F.cross_entropy(step.outputs, step.labels, reduction="none"), weights)


@dataclass(frozen=True)
class RandomWeighting:
    """No settings."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train once."""
        return trained(lesson, RectifiedNormal())
