"""What one step of training says about each sample: pure functions of (logits, labels).

Only a `Batch` looks at every class, and leaves at most three numbers a sample: the `Statistics`. All signals are
made of these, so that they can wait until there are enough of them to be worth the operations. The three are kept as
they come out of the look at the classes: whatever is made of them is made of many batches at once.
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

LOG2_E = math.log2(math.e)


class Batch:
    """Logits (batch, classes) and labels (batch, 1) of one step, with what several users need computed once."""

    def __init__(self, logits: Tensor, labels: Tensor) -> None:
        # half precision would lose the margin's digits; integers for labels are what gather takes
        self.logits = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        self.labels = labels

    @cached_property
    def assigned(self) -> Tensor:
        """Logit of the label: (batch, 1)."""
        return self.logits.gather(1, self.labels)

    @cached_property
    def others(self) -> Tensor:
        """Logits with the label's own struck out: (batch, classes)."""
        return self.logits.scatter(1, self.labels, -torch.inf)

    @cached_property
    def strongest(self) -> Tensor:
        """The largest other logit: (batch, 1)."""
        return self.others.amax(1, keepdim=True)

    @cached_property
    def margin(self) -> Tensor:
        """Assigned logit minus the largest other logit: (batch, 1)."""
        return self.assigned - self.strongest

    @cached_property
    def weights(self) -> Tensor:
        """What a softmax of the other classes would divide by their sum; the strongest one has 1: (batch, classes)."""
        strongest, others = self.strongest, self.others
        # in the others' place, since new memory costs more than the arithmetic; who asks for them again has a new copy
        del self.others
        return others.sub_(strongest).mul_(LOG2_E).exp2_()  # exp itself is much slower on a CPU

    def statistics(self, *, with_softmax: bool) -> "Statistics":
        """The margin; with softmax also the sum of the weights of the other classes, and their length."""
        if not with_softmax:
            return Statistics(self.margin)
        weights = self.weights
        total = weights.sum(1, keepdim=True)
        return Statistics(self.margin, total, torch.linalg.vector_norm(weights, dim=1, keepdim=True))

    def other_probabilities(self, statistics: "Statistics") -> Tensor:
        """Softmax with the label's own set to 0, in the place of the weights: (batch, classes)."""
        return self.weights.mul_(statistics.rest / statistics.total)


class Statistics:
    """The margin, (batch, 1); with softmax also the sum and the length of the other classes' weights, (batch, 1) each.

    The weights are relative to the strongest other class, whose own is 1.
    """

    def __init__(self, *parts: Tensor) -> None:
        self.parts = parts

    @property
    def margin(self) -> Tensor:
        """Assigned logit minus the largest other logit: (batch, 1)."""
        return self.parts[0]

    @property
    def total(self) -> Tensor:
        """Sum of the weights, at least 1: (batch, 1)."""
        return self.parts[1]

    @property
    def length(self) -> Tensor:
        """Root of the summed squares of the weights: (batch, 1)."""
        return self.parts[2]

    @cached_property
    def against(self) -> Tensor:
        """Log-odds of all other classes together against the label, all digits kept at both ends: (batch, 1)."""
        return self.total.log() - self.margin

    @cached_property
    def rest(self) -> Tensor:
        """Probability of all other classes together: (batch, 1)."""
        return self.against.sigmoid()


def margin(statistics: Statistics) -> Tensor:
    """Assigned logit minus the largest other logit (paper: the margin): (batch, 1)."""
    return statistics.margin


def loss(statistics: Statistics) -> Tensor:
    """Cross-entropy of the label: (batch, 1)."""
    return F.softplus(statistics.against)


def confidence(statistics: Statistics) -> Tensor:
    """Probability of the label: (batch, 1)."""
    return (-statistics.against).sigmoid()


def probability_margin(statistics: Statistics) -> Tensor:
    """Probability of the label minus the largest other probability: (batch, 1)."""
    return confidence(statistics) - statistics.rest / statistics.total


def correct(statistics: Statistics) -> Tensor:
    """1 where the label wins, else 0: (batch, 1)."""
    return (statistics.margin > 0).to(statistics.margin.dtype)


def el2n(statistics: Statistics) -> Tensor:
    """Length of (probabilities - one-hot label): (batch, 1)."""
    return statistics.rest * torch.hypot(statistics.length / statistics.total, torch.ones_like(statistics.rest))


SIGNALS: Mapping[str, Callable[[Statistics], Tensor]] = MappingProxyType(
    {signal.__name__: signal for signal in (margin, loss, confidence, probability_margin, correct, el2n)}
)
OF_MARGIN = frozenset({"margin", "correct"})  # these need no softmax
WIDE = "other_probabilities"  # the one signal of several numbers a sample: softmax with the label's own set to 0


def width(signal: str, num_outputs: int) -> int:
    """How many numbers a signal gives for one sample."""
    return num_outputs if signal == WIDE else 1
