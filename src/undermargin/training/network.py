"""One plain training loop for networks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Observer = Callable[[Tensor, Tensor, Tensor], None]


@dataclass(frozen=True)
class Budget:
    """How long and how to train: SGD with Nesterov momentum, as the paper does."""

    epochs: int
    batch_size: int
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    drops: tuple[float, ...] = ()  # at these shares of the epochs the learning rate falls to a tenth


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    budget: Budget,
    *,
    seed: int,
    augment: Callable[[Tensor, torch.Generator], Tensor],
    observe: Observer = lambda logits, labels, indices: None,  # noqa: ARG005
    end_epoch: Callable[[int], None] = lambda epoch: None,  # noqa: ARG005
) -> None:
    """Train in place; `observe(logits, labels, indices)` sees every step, `end_epoch(epoch)` every epoch's end."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=budget.learning_rate,
        momentum=budget.momentum,
        nesterov=True,
        weight_decay=budget.weight_decay,
    )
    milestones = [int(share * budget.epochs) for share in budget.drops]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones)
    for epoch in range(budget.epochs):
        model.train()
        for indices in _batches(len(images), budget.batch_size, generator):
            logits = model(augment(images[indices], generator))
            observe(logits, labels[indices], indices)
            optimizer.zero_grad()
            F.cross_entropy(logits, labels[indices]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
        end_epoch(epoch)


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
def predict(model: nn.Module, images: Tensor, num_classes: int) -> Labels:
    """The most likely of the real classes for each image: (samples,)."""
    model.eval()
    return np.asarray(model(images)[:, :num_classes].argmax(1).numpy())
