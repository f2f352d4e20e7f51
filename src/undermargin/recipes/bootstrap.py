"""Bootstrapping: labels are mixed with the network's own predictions (Reed et al. 2014)."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained
from undermargin.training.objective import Objective, Step


def soft_loss(logits: Tensor, labels: Tensor, beta: float, *, entropy_sign: int = 1) -> Tensor:
    """beta x cross-entropy + (1 - beta) x entropy of the prediction: (batch, classes), (batch,) -> (batch,)."""
    log = logits.log_softmax(1)
    entropy = -(log.exp() * log).sum(1)
    return beta * F.nll_loss(log, labels, reduction="none") + entropy_sign * (1 - beta) * entropy


def hard_loss(logits: Tensor, labels: Tensor, beta: float) -> Tensor:
    """beta x cross-entropy with the label + (1 - beta) x cross-entropy with the predicted class: (batch,)."""
    log = logits.log_softmax(1)
    return beta * F.nll_loss(log, labels, reduction="none") - (1 - beta) * log.amax(1)


@dataclass(frozen=True)
class Soft(Objective):
    """Soft bootstrapping. `entropy_sign=-1` matches the released code of the AUM paper, which rewards entropy."""

    beta: float = 0.95
    entropy_sign: int = 1

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch."""
        return soft_loss(step.outputs, step.labels, self.beta, entropy_sign=self.entropy_sign).mean()

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network."""
        return trained(lesson, self)


@dataclass(frozen=True)
class Hard(Objective):
    """Hard bootstrapping."""

    beta: float = 0.8

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch."""
        return hard_loss(step.outputs, step.labels, self.beta).mean()

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network."""
        return trained(lesson, self)
