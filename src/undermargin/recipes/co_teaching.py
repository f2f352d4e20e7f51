"""Co-teaching: two networks, each trained on samples with a small loss under the other (Han et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, watched
from undermargin.training.objective import Objective, Step


@dataclass(frozen=True)
class CoTeaching:
    """How fast the share of dropped samples rises to the noise rate, which must be known."""

    gradual_epochs: int = 10  # epochs until the full share is dropped
    exponent: float = 1.0

    def fit(self, lesson: Lesson) -> Fitted:
        """Train two networks together; the first one is the classifier."""
        exchange = Exchange(len(lesson.labels), lesson.known.need("noise_rate"), self)
        training, tracker = lesson.with_networks(2).train(objective=exchange)
        chosen = exchange.share_chosen()
        return Fitted(
            training, watched(lesson, tracker) | {"co_teaching": lesson.own(chosen)}, weights=lesson.own(chosen)
        )

    def forget_rate(self, epoch: int, noise_rate: float) -> float:
        """The share of a batch that is dropped: rises to noise_rate ** exponent, then stays at the noise rate.

        >>> [round(CoTeaching(gradual_epochs=5).forget_rate(epoch, 0.4), 2) for epoch in range(7)]
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4]
        """
        if epoch >= self.gradual_epochs:
            return noise_rate
        highest: float = noise_rate**self.exponent
        return highest * epoch / max(self.gradual_epochs - 1, 1)


class Exchange(Objective):
    """Trains each network on the small-loss samples of the other and counts, in the second half, which were chosen."""

    def __init__(self, num_samples: int, noise_rate: float, settings: CoTeaching) -> None:
        self.noise_rate = noise_rate
        self.settings = settings
        self.chosen = torch.zeros(num_samples, 2)  # number of times chosen, number of times shown

    def loss(self, step: Step) -> Tensor:
        """The sum of the two networks' mean losses, each on the samples that the other one chose.

        The authors divide each mean by the number of chosen samples once more. Adam is invariant to that factor, SGD
        is not, so it is left out here.
        """
        size = len(step.labels)
        kept = max(1, int((1 - self.settings.forget_rate(step.epoch, self.noise_rate)) * size))
        losses = cross_entropies(step.outputs, step.labels)
        smallest = losses.detach().argsort(0)[:kept]
        self._count(step, smallest)
        return losses[smallest[:, 1], 0].mean() + losses[smallest[:, 0], 1].mean()

    def _count(self, step: Step, smallest: Tensor) -> None:
        if step.share < 0.5:  # early choices come from networks that have not learned anything yet
            return
        is_chosen = torch.zeros(len(step.labels), 2, device=smallest.device).scatter_(0, smallest, 1.0)
        counts = torch.stack([is_chosen.mean(1), torch.ones(len(step.labels), device=smallest.device)], 1)
        self.chosen = self.chosen.to(counts.device).index_add(0, step.indices, counts)

    def share_chosen(self) -> Tensor:
        """The share of times that each sample was chosen when shown: (samples,), nan if it was never shown."""
        return self.chosen[:, 0] / self.chosen[:, 1]

    def tensors(self) -> dict[str, Tensor]:
        """The counts, for a checkpoint."""
        return {"chosen": self.chosen}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the counts."""
        self.chosen = tensors["chosen"]


def cross_entropies(outputs: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of every sample under every network: (batch, networks, classes), (batch,) -> (batch, networks)."""
    return torch.stack([F.cross_entropy(logits, labels, reduction="none") for logits in outputs.unbind(1)], 1)
