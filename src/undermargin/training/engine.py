"""The interface of all training engines: one epoch at a time, observable, resumable after every epoch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

Observe = Callable[[Tensor, Tensor, Tensor], None]
Rows = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Budget:
    """Epochs, batch size and optimizer of a training."""

    epochs: int  # or boosting rounds
    batch_size: int
    optimizer: Literal["sgd", "adamw"] = "sgd"  # sgd uses Nesterov momentum, as in the paper
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    drops: tuple[float, ...] = ()  # shares of the epochs at which the learning rate is divided by 10

    def rate(self, epoch: int) -> float:
        """The learning rate in an epoch."""
        passed = sum(epoch >= int(share * self.epochs) for share in self.drops)
        return self.learning_rate * 0.1**passed


class Engine(Protocol):
    """One training. An epoch depends only on the seed and on its number, so a training that is resumed from a
    checkpoint ends with the same result as an uninterrupted one."""

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """Train on every sample once; `observe(logits, labels, indices)` is called at every step."""

    def predict(self, rows: Rows) -> Logits:
        """Logits of these rows of the data set, which need not be part of the training set: (rows, outputs)."""

    def tensors(self) -> dict[str, Tensor]:
        """The state of the training as named tensors, for a checkpoint."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `tensors`."""


class Plan(Protocol):
    """How to train on a data set: the model, the budget, and how to start a training."""

    @property
    def model(self) -> str:
        """A description of the model."""

    @property
    def budget(self) -> Budget:
        """Epochs, batch size and optimizer."""

    def start(self, labels: Rows, num_outputs: int, *, seed: int, budget: Budget, rows: Rows | None = None) -> Engine:
        """Start a training on these labels (samples,), restricted to `rows` if given."""
