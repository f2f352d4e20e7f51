"""The training objective, and the hooks through which a recipe changes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

if TYPE_CHECKING:
    from undermargin.training.network import Training


@dataclass(frozen=True)
class Step:
    """One batch, before the weights are updated with it."""

    outputs: Tensor  # (batch, classes), or (batch, networks, classes) with several networks
    labels: Tensor  # (batch,)
    indices: Tensor  # (batch,)
    epoch: int
    share: float  # completed share of the training, from 0 to 1
    generator: torch.Generator  # on the CPU; gives the same numbers whenever this epoch is run
    evaluated: Callable[[], Tensor]  # the outputs for the same augmented inputs in evaluation mode, without gradients


class Objective:
    """Cross-entropy. A recipe overrides the hooks that it needs: the batches, the loss, additional learned state.

    Anything an objective learns must be part of `tensors`, so that a training can be resumed from a checkpoint.
    """

    def begin_epoch(self, training: "Training", epoch: int, generator: torch.Generator) -> None:
        """Called before the first step of an epoch."""

    def batches(self, order: Tensor, batch_size: int, epoch: int) -> list[Tensor]:  # noqa: ARG002
        """Split the rows of the training, given in random order, into the batches of this epoch."""
        return list(torch.split(order, batch_size))

    def loss(self, step: Step) -> Tensor:
        """The loss to minimize in this step: a scalar."""
        return F.cross_entropy(step.outputs, step.labels)

    def tensors(self) -> dict[str, Tensor]:
        """The learned state of this objective as named tensors, for a checkpoint."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `tensors`."""


def weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of losses (batch,); the weights (batch,) need not sum to 1. Returns 0 if all weights are 0."""
    return (losses * weights).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
