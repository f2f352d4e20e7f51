"""L_DMI: predictions and labels share as much information as they can, whatever the noise between classes
(Xu et al. 2019)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.agreement import agreement
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, watched
from undermargin.training.engine import Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step


@dataclass(frozen=True)
class LDmi:
    """Cross-entropy first, then the determinant, each up to where it predicts held-out labels best.

    Without held-out samples each stage ends with its last epoch. Then the second has nothing to mend: a network that
    has memorised its labels shares all information with them.
    """

    learning_rate: float = 1e-6  # of the second stage, constant: the gradient grows where predictions hardly differ
    second_share: float = 100 / 120  # the second stage's epochs as a share of the first's: the authors' 100 and 120
    held_out: float = 0.2  # share of the samples, with their noisy labels: one of the authors' five parts of CIFAR-10
    floor: float = 1e-3  # added to the determinant of a batch's counts

    def fit(self, lesson: Lesson) -> Fitted:
        """Train twice."""
        held_out, rows = self._split(lesson)
        taught = replace(lesson, rows=rows)  # the batch size is kept: smaller ones lack classes
        first = Best(held_out)
        training, _ = taught.train("cross_entropy", first)
        budget = replace(
            taught.budget,
            epochs=max(1, round(self.second_share * taught.budget.epochs)),
            learning_rate=self.learning_rate,
            drops=(),
        )
        second = Determinant(held_out, np.unique(lesson.labels[rows]), self.floor)
        weights = first.best(training)
        training, tracker = replace(taught, budget=budget).train("determinant", second, weights=weights)
        training.network.load_state_dict(second.best(training))
        scores = watched(lesson, tracker) | {"l_dmi": agreement(lesson, training)}
        return Fitted(training, scores, notes=second.notes())

    def _split(self, lesson: Lesson) -> tuple[Rows, Rows]:
        order = np.random.default_rng(lesson.seed).permutation(lesson.rows)
        num_held_out = int(self.held_out * len(order))
        return np.sort(order[:num_held_out]), np.sort(order[num_held_out:])


class Best(Objective):
    """Cross-entropy; remembers the weights that predicted held-out labels best, looked at between epochs."""

    def __init__(self, held_out: Rows) -> None:
        self.held_out = held_out
        self.share_right = -1.0
        self.weights: dict[str, Tensor] = {}

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Look at what the epoch before has made of the network."""
        self._look(training)

    def best(self, training: Training) -> dict[str, Tensor]:
        """The weights to go on with, the last ones included; without held-out samples always these."""
        self._look(training)
        return self.weights or training.network.state_dict()

    def _look(self, training: Training) -> None:
        if not len(self.held_out):
            return
        labels = training.labels.cpu().numpy()[self.held_out]
        share_right = float((training.predict(self.held_out).argmax(1) == labels).mean())
        if share_right > self.share_right:
            self.share_right = share_right
            self.weights = {name: value.clone() for name, value in training.network.state_dict().items()}

    def tensors(self) -> dict[str, Tensor]:
        """The best so far."""
        weights = {f"best.{name}": value for name, value in self.weights.items()}
        return weights | {"share_right": torch.tensor(self.share_right, dtype=torch.float64)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The best so far."""
        self.share_right = float(tensors["share_right"])
        best = {name: value for name, value in tensors.items() if name.startswith("best.")}
        self.weights = {name.removeprefix("best."): value for name, value in best.items()}


class Determinant(Best):
    """Minus the logarithm of the determinant, of the classes (classes,) that occur in the training labels."""

    def __init__(self, held_out: Rows, classes: Rows, floor: float) -> None:
        super().__init__(held_out)
        self.classes = torch.from_numpy(classes)
        self.floor = floor
        self.batches_seen = torch.zeros(2)  # those that lacked a class, all

    def loss(self, step: Step) -> Tensor:
        """0 for a batch that lacks a class: its determinant is 0 whatever is predicted, and teaches nothing."""
        self.classes = self.classes.to(step.outputs.device)
        value, is_usable = determinant_loss(step.outputs, step.labels, self.classes, self.floor)
        counts = torch.stack([~is_usable, torch.ones_like(is_usable)]).float()
        self.batches_seen = self.batches_seen.to(counts.device) + counts
        return value

    def notes(self) -> tuple[str, ...]:
        """How many batches lacked a class, if any did."""
        lacking, total = (int(count) for count in self.batches_seen)
        message = f"{lacking} of {total} batches lacked one of {len(self.classes)} classes and taught nothing"
        return (f"{message}; larger batches lack fewer",) if lacking else ()

    def tensors(self) -> dict[str, Tensor]:
        """The best so far, and the count."""
        return super().tensors() | {"batches_seen": self.batches_seen}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The best so far, and the count."""
        super().load(tensors)
        self.batches_seen = tensors["batches_seen"]


def determinant_loss(logits: Tensor, labels: Tensor, classes: Tensor, floor: float = 0.0) -> tuple[Tensor, Tensor]:
    """-log(|det U| + floor) with U = labels' x predictions, less a constant; and whether there is a determinant.

    U is divided by the batch size, as 100 classes would overflow else; the constant is classes x log(batch size).
    Where U is singular the loss is 0 and has no gradient.
    """
    is_label = F.one_hot(labels, logits.shape[1])[:, classes].to(logits.dtype)
    joint = is_label.T @ logits.softmax(1)[:, classes] / len(labels)
    is_usable = torch.linalg.slogdet(joint.detach()).logabsdet.isfinite() & is_label.any(0).all()
    safe = torch.where(is_usable, joint, torch.eye(len(classes), dtype=joint.dtype, device=joint.device))
    log = torch.linalg.slogdet(safe).logabsdet
    if floor > 0:
        log = torch.logaddexp(log, torch.full_like(log, math.log(floor) - len(classes) * math.log(len(labels))))
    return torch.where(is_usable, -log, logits.sum() * 0), is_usable
