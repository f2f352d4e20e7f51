"""Signals: one number per sample and training step, computed from (logits, labels).

Only a `Batch` reads every class. It reduces each row to at most four numbers, the `Statistics`, and every built-in
signal is a function of these. Statistics are small, so they can be collected over many steps before the signals are
computed for all of them at once. A signal of a plug-in is a function of the `Batch` itself.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

LOG2_E = math.log2(math.e)
LEAST_EXPONENT = -2000.0  # 2 to this power is zero in every floating point type; unlike -inf, zero times it is zero


class Batch:
    """Logits (batch, classes) and labels (batch, 1) of one step; values that several signals need are computed once.

    Functions of a batch must not modify its tensors.
    """

    def __init__(self, logits: Tensor, labels: Tensor) -> None:
        # half precision would lose digits of the margin; gather needs integer labels
        self.logits = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        self.labels = labels

    @cached_property
    def assigned(self) -> Tensor:
        """Logit of the label: (batch, 1)."""
        return self.logits.gather(1, self.labels)

    @cached_property
    def others(self) -> Tensor:
        """Logits with the label's own replaced by -inf: (batch, classes)."""
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
        """Exponentials of the other logits, relative to the largest of them, whose weight is 1: (batch, classes)."""
        return self._exponents().exp2_()  # exp itself is much slower on a CPU

    def _exponents(self) -> Tensor:
        """Base-2 logarithms of the weights: (batch, classes), in the memory of `others`.

        Allocating memory costs more than the arithmetic; `others` is computed again if it is needed later.
        """
        strongest, others = self.strongest, self.others
        del self.others
        return others.sub_(strongest).mul_(LOG2_E)

    def statistics(self, number: int) -> "Statistics":
        """The first `number` statistics of every row: 1, `WITH_SOFTMAX` or `WITH_ENTROPY`."""
        if number == 1:
            return Statistics(self.logits.shape[1], self.margin)
        bits = []
        if number == WITH_ENTROPY:
            exponents = self._exponents()
            self.weights = exponents.exp2()
            bits = [exponents.clamp_(min=LEAST_EXPONENT).mul_(self.weights).sum(1, keepdim=True)]
        total = self.weights.sum(1, keepdim=True)
        length = torch.linalg.vector_norm(self.weights, dim=1, keepdim=True)
        return Statistics(self.logits.shape[1], self.margin, total, length, *bits)

    def other_probabilities(self, statistics: "Statistics") -> Tensor:
        """Softmax with the label's own set to 0: (batch, classes), in the memory of `weights`."""
        return self.weights.mul_(statistics.rest / statistics.total)


class Statistics:
    """What the built-in signals need of each row, as columns (batch, 1).

    The margin; with softmax also the sum and the Euclidean length of the other classes' weights; with entropy also
    the sum of weight times log2(weight). Weights are relative to the strongest other class, whose weight is 1.
    """

    def __init__(self, num_classes: int, *parts: Tensor) -> None:
        self.num_classes = num_classes
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
        """Square root of the sum of squared weights: (batch, 1)."""
        return self.parts[2]

    @property
    def bits(self) -> Tensor:
        """Sum of weight times log2(weight), at most 0: (batch, 1)."""
        return self.parts[3]

    @cached_property
    def against(self) -> Tensor:
        """Log-odds of all other classes together against the label, accurate at both ends: (batch, 1)."""
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
    """1 where the label has the largest logit, else 0: (batch, 1)."""
    return (statistics.margin > 0).to(statistics.margin.dtype)


def el2n(statistics: Statistics) -> Tensor:
    """Length of (probabilities - one-hot label): (batch, 1)."""
    return statistics.rest * torch.hypot(statistics.length / statistics.total, torch.ones_like(statistics.rest))


def signed_entropy(statistics: Statistics) -> Tensor:
    """Log(classes) minus the entropy of the prediction, negative where the label is not the most likely class.

    (batch, 1) between -log(classes) and log(classes): 0 is a uniform prediction.
    """
    # entropy of "label or not", plus the entropy within the other classes where it is not
    among_others = statistics.total.log() - statistics.bits / (LOG2_E * statistics.total)
    entropy = confidence(statistics) * loss(statistics) + statistics.rest * (
        F.softplus(-statistics.against) + among_others
    )
    certainty = (math.log(statistics.num_classes) - entropy).clamp(min=0)
    return certainty.where(statistics.margin > 0, -certainty)


SIGNALS: Mapping[str, Callable[[Statistics], Tensor]] = MappingProxyType(
    {one.__name__: one for one in (margin, loss, confidence, probability_margin, correct, el2n, signed_entropy)}
)
WIDE = "other_probabilities"  # the only signal with several numbers per sample: softmax with the label's own set to 0
WITH_SOFTMAX, WITH_ENTROPY = 3, 4
_NEEDED = {"margin": 1, "correct": 1, "signed_entropy": WITH_ENTROPY}  # statistics; other signals need the softmax

Signal = str | Callable[[Batch], Tensor]  # the name of a built-in signal, or a plug-in's own function -> (batch, 1)


def num_statistics(signals: Iterable[str]) -> int:
    """How many statistics these built-in signals need."""
    return max(_NEEDED.get(signal, WITH_SOFTMAX) for signal in signals)


def width(signal: Signal, num_outputs: int) -> int:
    """How many numbers a signal has per sample."""
    return num_outputs if signal == WIDE else 1


def name_of(signal: Signal) -> str:
    """The name under which a signal is recorded; of a plug-in's function, with the module it comes from."""
    if isinstance(signal, str):
        return signal
    return f"{signal.__module__}.{getattr(signal, '__qualname__', type(signal).__name__)}"
