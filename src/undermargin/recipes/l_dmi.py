"""L_DMI: maximize the mutual information of predictions and labels, measured so that class-dependent noise only adds a
constant (Xu et al. 2019)."""

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
    """Train with cross-entropy, then with the determinant loss; each stage keeps its best weights on held-out labels.

    Without held-out samples each stage ends with its last epoch. The second stage then cannot improve on the first:
    the predictions of a network that has memorized its labels already share all information with them.
    """

    learning_rate: float = 1e-6  # of the second stage, constant: the gradient is large where predictions hardly differ
    second_share: float = 100 / 120  # epochs of the second stage relative to the first: the authors' 100 and 120
    held_out: float = 0.2  # share of the samples, with their noisy labels: one of the authors' five parts of CIFAR-10
    floor: float = 1e-3  # added to the determinant of the batch's joint counts

    def fit(self, lesson: Lesson) -> Fitted:
        """Train in two stages."""
        held_out, rows = self._split(lesson)
        taught = replace(lesson, rows=rows)  # same batch size: smaller batches would lack classes
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
    """Cross-entropy; between epochs, keeps the weights that predict the held-out labels best."""

    def __init__(self, held_out: Rows) -> None:
        self.held_out = held_out
        self.share_right = -1.0
        self.weights: dict[str, Tensor] = {}

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Evaluate the network after the previous epoch."""
        self._look(training)

    def best(self, training: Training) -> dict[str, Tensor]:
        """The best weights, including those after the last epoch; without held-out samples, the last weights."""
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
        """The best weights so far, for a checkpoint."""
        weights = {f"best.{name}": value for name, value in self.weights.items()}
        return weights | {"share_right": torch.tensor(self.share_right, dtype=torch.float64)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the best weights."""
        self.share_right = float(tensors["share_right"])
        best = {name: value for name, value in tensors.items() if name.startswith("best.")}
        self.weights = {name.removeprefix("best."): value for name, value in best.items()}


class Determinant(Best):
    """The negative log determinant, over the classes (classes,) that occur in the training labels."""

    def __init__(self, held_out: Rows, classes: Rows, floor: float) -> None:
        super().__init__(held_out)
        self.classes = torch.from_numpy(classes)
        self.floor = floor
        self.batches_seen = torch.zeros(2)  # number of batches that lacked a class, number of all batches

    def loss(self, step: Step) -> Tensor:
        """Determinant loss; 0 for a batch that lacks a class, whose determinant is 0 for any prediction."""
        self.classes = self.classes.to(step.outputs.device)
        value, is_usable = determinant_loss(step.outputs, step.labels, self.classes, self.floor)
        counts = torch.stack([~is_usable, torch.ones_like(is_usable)]).float()
        self.batches_seen = self.batches_seen.to(counts.device) + counts
        return value

    def notes(self) -> tuple[str, ...]:
        """The number of batches that lacked a class, if any did."""
        lacking, total = (int(count) for count in self.batches_seen)
        message = f"{lacking} of {total} batches lacked one of {len(self.classes)} classes and were not used"
        return (f"{message}; increase the batch size",) if lacking else ()

    def tensors(self) -> dict[str, Tensor]:
        """The best weights so far and the counts, for a checkpoint."""
        return super().tensors() | {"batches_seen": self.batches_seen}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the best weights and the counts."""
        super().load(tensors)
        self.batches_seen = tensors["batches_seen"]


def determinant_loss(logits: Tensor, labels: Tensor, classes: Tensor, floor: float = 0.0) -> tuple[Tensor, Tensor]:
    """-log(|det U| + floor), up to a constant, with U = labels.T @ predictions; and whether U is regular.

    U is divided by the batch size, because the determinant of 100 classes would overflow; the constant is
    classes x log(batch size). If U is singular, the loss is 0 and has no gradient.
    """
    is_label = F.one_hot(labels, logits.shape[1])[:, classes].to(logits.dtype)
    joint = is_label.T @ logits.softmax(1)[:, classes] / len(labels)
    is_usable = torch.linalg.slogdet(joint.detach()).logabsdet.isfinite() & is_label.any(0).all()
    safe = torch.where(is_usable, joint, torch.eye(len(classes), dtype=joint.dtype, device=joint.device))
    log = torch.linalg.slogdet(safe).logabsdet
    if floor > 0:
        log = torch.logaddexp(log, torch.full_like(log, math.log(floor) - len(classes) * math.log(len(labels))))
    return torch.where(is_usable, -log, logits.sum() * 0), is_usable
