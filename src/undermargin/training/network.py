"""One plain training loop for networks, an epoch at a time, that can stop after any of them and go on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

Inputs = tuple[Tensor, ...]  # what a model takes, sample by sample along the first axis of each
Augment = Callable[[Inputs, torch.Generator], Inputs]
Observe = Callable[[Tensor, Tensor, Tensor], None]

OPTIMIZER = "optimizer."  # prefix of the optimizer's tensors in a checkpoint
MODEL = "model."


@dataclass(frozen=True)
class Budget:
    """How long and how to train."""

    epochs: int
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


class Training:
    """A network, its optimizer and its data. What an epoch does depends on the seed and its number alone,
    so a training that goes on from a checkpoint ends as if it had never stopped."""

    def __init__(
        self, model: nn.Module, inputs: Inputs, labels: Tensor, budget: Budget, *, seed: int, augment: Augment | None
    ) -> None:
        self.model = model
        self.inputs = inputs
        self.labels = labels
        self.budget = budget
        self.seed = seed
        self.augment = augment
        self.optimizer = _optimizer(model, budget)

    def run_epoch(self, epoch: int, observe: Observe | None = None) -> None:
        """Show every sample once; `observe(logits, labels, indices)` sees every step."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = self.budget.rate(epoch)
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))  # for dropout
            for indices in _batches(len(self.labels), self.budget.batch_size, generator):
                batch = tuple(values[indices] for values in self.inputs)
                labels = self.labels[indices]
                logits = self.model(*(self.augment(batch, generator) if self.augment else batch))
                if observe is not None:
                    observe(logits, labels, indices)
                self.optimizer.zero_grad()
                F.cross_entropy(logits, labels).backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training has changed, by name."""
        model = {MODEL + name: value for name, value in self.model.state_dict().items()}
        state = self.optimizer.state_dict()["state"]
        return model | {
            f"{OPTIMIZER}{number}.{name}": torch.as_tensor(value)
            for number, values in state.items()
            for name, value in values.items()
            if value is not None
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""
        model = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
        self.model.load_state_dict(model)
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith(OPTIMIZER):
                number, key = name.removeprefix(OPTIMIZER).split(".", 1)
                state.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})


def _optimizer(model: nn.Module, budget: Budget) -> torch.optim.Optimizer:
    if budget.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay)
    return torch.optim.SGD(
        model.parameters(),
        lr=budget.learning_rate,
        momentum=budget.momentum,
        nesterov=True,
        weight_decay=budget.weight_decay,
    )


def _batches(num_samples: int, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """A new order every epoch; a last batch of one, which has no batch statistics, joins the one before."""
    batches = list(torch.split(torch.randperm(num_samples, generator=generator), batch_size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def build(make: Callable[[int], nn.Module], num_outputs: int, *, seed: int) -> nn.Module:
    """A network with weights drawn from this seed, the global random state left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(num_outputs)


@torch.no_grad()
def predict(model: nn.Module, inputs: Inputs, num_classes: int, *, batch_size: int = 1024) -> npt.NDArray[np.int64]:
    """The most likely of the real classes for each sample: (samples,)."""
    model.eval()
    parts = zip(*(torch.split(values, batch_size) for values in inputs), strict=True)
    return np.concatenate([model(*part)[:, :num_classes].argmax(1).numpy() for part in parts])
