"""What one step of training says about each sample: pure functions of (logits, labels).

A `Batch` holds logits (batch, classes) and labels (batch, 1); every signal gives (batch, width) and
shares what others have computed from the same batch (one softmax for all of them).
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

import torch
from torch import Tensor


class Batch:
    """Logits (batch, classes) and labels (batch, 1), with what several signals need computed once."""

    def __init__(self, logits: Tensor, labels: Tensor) -> None:
        # half precision would lose the margin's digits; integers for labels are what gather takes
        self.logits = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        self.labels = labels

    @cached_property
    def assigned(self) -> Tensor:
        """Logit of the label: (batch, 1)."""
        return self.logits.gather(1, self.labels)

    @property
    def others(self) -> Tensor:
        """Logits with the label's own struck out: (batch, classes). Large, so it is not kept."""
        return self.logits.scatter(1, self.labels, -torch.inf)

    @cached_property
    def margin(self) -> Tensor:
        """Assigned logit minus the largest other logit: (batch, 1)."""
        return self.assigned - self.others.amax(1, keepdim=True)

    @cached_property
    def _softmax(self) -> tuple[Tensor, Tensor, Tensor]:
        """The label's probability, the largest one, and all with the label's set to 0, in one piece of memory."""
        probabilities = self.logits.softmax(1)
        confidence = probabilities.gather(1, self.labels)
        largest = probabilities.amax(1, keepdim=True)
        return confidence, largest, probabilities.scatter_(1, self.labels, 0)

    @property
    def confidence(self) -> Tensor:
        """Probability of the label: (batch, 1)."""
        return self._softmax[0]

    @property
    def other_probabilities(self) -> Tensor:
        """Softmax with the label's own set to 0: (batch, classes)."""
        return self._softmax[2]

    @cached_property
    def rest(self) -> Tensor:
        """Probability of all other classes together: (batch, 1)."""
        return self.other_probabilities.sum(1, keepdim=True)

    @cached_property
    def loss(self) -> Tensor:
        """Cross-entropy: (batch, 1)."""
        # Each form keeps its digits where the other loses them: near 1 the label's probability is known by the rest,
        # near 0 by its distance from the largest, which cannot underflow.
        far = -self.margin - self._softmax[1].log()
        return torch.where(self.margin > 0, -torch.log1p(-self.rest), far)


def margin(batch: Batch) -> Tensor:
    """Assigned logit minus the largest other logit (paper: the margin): (batch, 1)."""
    return batch.margin


def loss(batch: Batch) -> Tensor:
    """Cross-entropy of the label: (batch, 1)."""
    return batch.loss


def confidence(batch: Batch) -> Tensor:
    """Probability of the label: (batch, 1)."""
    return batch.confidence


def probability_margin(batch: Batch) -> Tensor:
    """Probability of the label minus the largest other probability: (batch, 1)."""
    # the largest other logit is the assigned one minus the margin, so its log-probability is -loss - margin
    return batch.confidence - (-batch.loss - batch.margin).exp()


def correct(batch: Batch) -> Tensor:
    """1 where the label wins, else 0: (batch, 1)."""
    return (batch.margin > 0).to(batch.logits.dtype)


def el2n(batch: Batch) -> Tensor:
    """Length of (probabilities - one-hot label): (batch, 1)."""
    others: Tensor = torch.linalg.vector_norm(batch.other_probabilities, dim=1, keepdim=True)
    return torch.hypot(others, batch.rest)


def other_probabilities(batch: Batch) -> Tensor:
    """Probabilities of all classes with the label's set to 0: (batch, classes)."""
    return batch.other_probabilities


WIDE = "other_probabilities"  # the one signal of several numbers a sample

SIGNALS: Mapping[str, Callable[[Batch], Tensor]] = MappingProxyType(
    {
        signal.__name__: signal
        for signal in (margin, loss, confidence, probability_margin, correct, el2n, other_probabilities)
    }
)


def width(signal: str, num_outputs: int) -> int:
    """How many numbers a signal gives for one sample."""
    return num_outputs if signal == WIDE else 1
