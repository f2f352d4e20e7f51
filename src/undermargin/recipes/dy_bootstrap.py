"""DY-Bootstrap: a mixture of two distributions, fitted to the losses, sets how much each label is trusted
(Arazo et al. 2019)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.cutoffs.mixtures import Posterior, beta_posterior, gaussian_posterior
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, watched
from undermargin.tracking.run import Run
from undermargin.training.engine import Budget, Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step
from undermargin.verdicts.identify import identify

MIXTURES = {"beta": beta_posterior, "gaussian": gaussian_posterior}
NAMES = {"beta": "dy_bootstrap", "gaussian": "dy_bootstrap_gmm"}
CERTAIN = 1e-4  # weights are kept this far from 0 and 1


@dataclass(frozen=True)
class DyBootstrap:
    """The variant without mixup, which the authors' released code describes but does not run."""

    mixture: Literal["beta", "gaussian"] = "beta"
    is_soft: bool = False  # mix with predicted probabilities instead of the predicted class
    start: float | None = None  # share of the training with plain cross-entropy; None: see `first_epoch`
    evenness: float = 1.0  # weight of the regularizer against predicting one class for all samples

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network; the verdicts come from a mixture fitted to its final losses."""
        training, tracker = lesson.train(objective=DynamicLabels(self, lesson.rows))
        logits = training.outputs(lesson.rows).cpu()
        labels = lesson.labels[lesson.rows]
        losses = F.cross_entropy(logits, torch.from_numpy(labels), reduction="none").double().numpy()
        weights = MIXTURES[self.mixture](losses).of(losses)
        name = NAMES[self.mixture]
        believed = logits.softmax(1) if self.is_soft else F.one_hot(logits.argmax(1), logits.shape[1])
        own = np.eye(logits.shape[1])[labels]
        return Fitted(
            training,
            watched(lesson, tracker) | {name: 1 - weights},
            verdicts=identify(Run(scores=1 - weights, labels=labels, score=name), 0.5),
            weights=1 - weights,
            soft_labels=own + weights[:, None] * (believed.double().numpy() - own),
        )

    def first_epoch(self, budget: Budget) -> int:
        """The first epoch in which labels are mixed with predictions.

        The authors start 6 of 300 epochs after the first drop of the learning rate; until then a high learning rate
        keeps the network from memorizing wrong labels. With a constant learning rate nothing prevents memorization, so
        mixing starts after a tenth of the training.

        >>> DyBootstrap().first_epoch(Budget(300, 128, drops=(1 / 3, 5 / 6))), DyBootstrap().first_epoch(Budget(40, 64))
        (106, 4)
        """
        if self.start is not None:
            return int(self.start * budget.epochs)
        share = min(budget.drops) + 6 / 300 if budget.drops else 0.1
        return max(1, round(share * budget.epochs))  # an untrained network predicts nothing useful


def dynamic_loss(logits: Tensor, labels: Tensor, weights: Tensor, *, is_soft: bool = False) -> Tensor:
    """(1 - weight) x cross-entropy with the label + weight x cross-entropy with the network's own prediction.

    The prediction is treated as a constant. (batch, classes), (batch,), (batch,) -> (batch,).
    """
    log = logits.log_softmax(1)
    believed = -(log.detach().exp() * log).sum(1) if is_soft else -log.amax(1)
    return (1 - weights) * F.nll_loss(log, labels, reduction="none") + weights * believed


def unevenness(logits: Tensor) -> Tensor:
    """How far the mean prediction of a batch is from the uniform distribution; 0 if they are equal."""
    mean = logits.softmax(1).mean(0)
    return -(mean.clamp(min=torch.finfo(mean.dtype).tiny) * len(mean)).log().mean()


class DynamicLabels(Objective):
    """Fits the mixture before every epoch and evaluates it at every step.

    The mixture depends only on the current network and the training set, so checkpoints need not store it.
    """

    def __init__(self, settings: DyBootstrap, rows: Rows) -> None:
        self.settings = settings
        self.rows = rows
        self.posterior: Posterior | None = None  # None: plain cross-entropy
        self.shares = torch.zeros(0)  # the posterior on its grid, on the training device

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:
        """From `first_epoch` on, fit the mixture to losses in evaluation mode of inputs augmented as in training."""
        self.posterior = None
        if epoch < self.settings.first_epoch(training.budget):
            return
        outputs = training.outputs(self.rows, generator)
        losses = F.cross_entropy(outputs, training.labels[torch.from_numpy(self.rows)], reduction="none")
        finite = losses[losses.isfinite()].double().cpu().numpy()
        if len(finite):
            self.posterior = MIXTURES[self.settings.mixture](finite)
            self.shares = torch.from_numpy(self.posterior.shares).float().to(outputs.device)

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch plus the regularizer."""
        if self.posterior is None:
            return F.cross_entropy(step.outputs, step.labels)
        losses = F.cross_entropy(step.evaluated(), step.labels, reduction="none")
        weights = self._suspicion(self.posterior, losses).clamp(CERTAIN, 1 - CERTAIN)
        mean = dynamic_loss(step.outputs, step.labels, weights, is_soft=self.settings.is_soft).mean()
        return mean + self.settings.evenness * unevenness(step.outputs)

    def _suspicion(self, posterior: Posterior, losses: Tensor) -> Tensor:
        """`Posterior.of`, rounded to its grid and computed on the device: (batch,)."""
        width = posterior.highest - posterior.lowest
        places = ((losses - posterior.lowest) / (width or 1)).nan_to_num(1.0).clamp(0, 1) * (len(self.shares) - 1)
        return self.shares[places.round().long()]
