"""What a training minimises, and the few places where a recipe may change it."""

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
    """One batch, seen before the weights are changed by it."""

    outputs: Tensor  # (batch, classes); of several networks (batch, networks, classes)
    labels: Tensor  # (batch,)
    indices: Tensor  # (batch,)
    epoch: int
    share: float  # of the whole training that has passed, from 0 to 1
    generator: torch.Generator  # on the CPU; the same draws whenever this epoch is run
    evaluated: Callable[[], Tensor]  # the outputs of the same augmented inputs in evaluation mode, without gradients


class Objective:
    """Cross-entropy. A recipe overrides what it changes: the batches, the loss, what is learned beside the weights.

    What an objective learns belongs into `tensors`, so that a training can go on from a checkpoint.
    """

    def begin_epoch(self, training: "Training", epoch: int, generator: torch.Generator) -> None:
        """Look at the training before the first step of an epoch."""

    def batches(self, order: Tensor, batch_size: int, epoch: int) -> list[Tensor]:  # noqa: ARG002
        """Who is shown together in this epoch, from the training's rows in random order."""
        return list(torch.split(order, batch_size))

    def loss(self, step: Step) -> Tensor:
        """What is minimised in this step: a number."""
        return F.cross_entropy(step.outputs, step.labels)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that this objective has learned, by name."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""


def weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """The mean of losses (batch,) by weights (batch,) that need not add up to one; 0 where all weights are 0."""
    return (losses * weights).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
