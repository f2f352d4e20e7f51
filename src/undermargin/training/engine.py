"""What every way of training offers: an epoch at a time, watched, to be stopped after any of them and gone on with."""

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
    """How long and how to train."""

    epochs: int  # or rounds of boosting
    batch_size: int
    optimizer: Literal["sgd", "adamw"] = "sgd"  # sgd has Nesterov momentum, as in the paper
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    drops: tuple[float, ...] = ()  # at these shares of the epochs the learning rate falls to a tenth

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch."""
        passed = sum(epoch >= int(share * self.epochs) for share in self.drops)
        return self.learning_rate * 0.1**passed


class Engine(Protocol):
    """One training. What an epoch does depends on the seed and its number alone, so a training that goes on from a
    checkpoint ends as if it had never stopped."""

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """Show every sample once; `observe(logits, labels, indices)` sees every step."""

    def predict(self, rows: Rows) -> Logits:
        """Logits of these samples of the data set, whether they were trained on or not: (rows, outputs)."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training has changed, by name."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""


class Plan(Protocol):
    """How a data set is trained on: what is trained, for how long, and how a training begins."""

    @property
    def model(self) -> str:
        """What is trained, in words."""

    @property
    def budget(self) -> Budget:
        """How long and how."""

    def start(self, labels: Rows, num_outputs: int, *, seed: int, budget: Budget, rows: Rows | None = None) -> Engine:
        """A training on these labels (samples,), of these rows alone if they are given."""
