"""What a recipe is given: a noisy training set, a network, a budget, and the loop to train with."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.errors import DivergedError, InputError
from undermargin.models.group import Group
from undermargin.recipes.fitted import Fitted
from undermargin.tracking.tracker import Tracker
from undermargin.training.checkpoint import load_checkpoint, save_checkpoint
from undermargin.training.engine import Budget, Rows
from undermargin.training.network import NetworkPlan, Training
from undermargin.training.objective import Objective
from undermargin.verdicts.record import Verdicts

Mask = npt.NDArray[np.bool_]

OnEpoch = Callable[[str, int, int], None]  # stage, epochs ended, epochs in all


@dataclass(frozen=True, eq=False)
class Known:
    """What is known about the noise beside the labels themselves; most recipes need nothing of it."""

    noise_rate: float | None = None  # share of wrong labels
    pattern: Literal["uniform", "asymmetric"] | None = None
    is_clean: Mask | None = None  # (samples,) whose label is right: for the oracle
    trusted: Rows | None = None  # indices of some samples whose true labels are known
    true_labels: Rows | None = None  # (samples,) read for the trusted ones alone

    def need(self, name: str) -> Any:
        """A field that a recipe cannot do without."""
        value = getattr(self, name)
        if value is None:
            raise InputError(f"this recipe needs to know {NEEDS[name]}; pass known=Known({name}=...)")
        return value

    def check(self, num_samples: int) -> None:
        """Raise for what cannot be true of so many samples."""
        if self.noise_rate is not None and not 0 <= self.noise_rate < 1:
            raise InputError(f"the noise rate is {self.noise_rate}, expected a share from 0 to less than 1")
        for name in ("is_clean", "true_labels"):
            value = getattr(self, name)
            if value is not None and len(value) != num_samples:
                raise InputError(f"{name} has {len(value)} entries, expected {num_samples}")

    def only(self, names: tuple[str, ...]) -> "Known":
        """Nothing but these fields."""
        return Known(**{name: getattr(self, name) for name in names})

    def digest(self) -> str:
        """A short name of all that is known."""
        words = [(name, np.asarray(getattr(self, name)).tolist()) for name in NEEDS if getattr(self, name) is not None]
        return hashlib.sha256(repr(words).encode()).hexdigest()[:16]


NEEDS = {
    "noise_rate": "the share of wrong labels",
    "pattern": "whether the noise is uniform or asymmetric",
    "is_clean": "which labels are right",
    "trusted": "some samples whose true labels are known",
    "true_labels": "the true labels of some samples",
}


@dataclass(frozen=True, eq=False)
class Lesson:
    """One way to be trained. A recipe with several trainings makes each from the first by `replace`."""

    plan: NetworkPlan
    labels: Rows  # (samples,) those of a test set, if there is one, behind
    rows: Rows  # who is trained on
    num_classes: int
    budget: Budget
    seed: int
    known: Known = Known()
    scores: tuple[str, ...] = ("aum",)  # what the tracker watches
    folder: Path | None = None  # where trainings leave their checkpoints; None: a killed one begins again
    on_epoch: OnEpoch = lambda stage, epoch, epochs: None  # noqa: ARG005
    num_outputs: int = 0  # 0: as many as classes
    skip_epochs: int = 0  # that the tracker does not count

    def with_networks(self, number: int) -> "Lesson":
        """The same with several networks side by side."""
        make = partial(Group, self.plan.make_model, number)
        return replace(self, plan=replace(self.plan, make_model=make))

    def shortened(self, epochs: int) -> "Lesson":
        """Its first epochs alone: the learning rate drops where it would, or not at all."""
        drops = tuple(share * self.budget.epochs / epochs for share in self.budget.drops)
        budget = replace(self.budget, epochs=epochs, drops=tuple(share for share in drops if share < 1))
        return replace(self, budget=budget)

    def on_part(self, rows: Rows) -> "Lesson":
        """The same on fewer samples with the number of iterations kept: smaller batches (paper: removing a quarter
        turns a batch of 256 into one of 192)."""
        if not len(rows):
            raise InputError(f"none of the {len(self.rows)} samples is kept: there is nothing to train on")
        batch_size = max(2, round(self.budget.batch_size * len(rows) / len(self.rows)))
        return replace(self, rows=rows, budget=replace(self.budget, batch_size=batch_size))

    def own(self, values: Tensor | npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """What is known of every sample, of the training samples alone."""
        if isinstance(values, Tensor):
            values = values.detach().cpu().numpy()
        return np.asarray(values, dtype=np.float64)[self.rows]

    def train(
        self,
        stage: str = "training",
        objective: Objective | None = None,
        *,
        weights: Mapping[str, Tensor] | None = None,
    ) -> tuple[Training, Tracker]:
        """A whole training and the tracker that watched it; it goes on where an earlier one of this stage was killed.

        `weights` are a network's to begin with, as `Training.network.state_dict()` gives them.
        """
        training = self.plan.start(
            self.labels,
            self.num_outputs or self.num_classes,
            seed=self.seed,
            budget=self.budget,
            rows=self.rows,
            objective=objective,
        )
        if weights is not None:
            training.network.load_state_dict(weights)
        tracker = Tracker(len(self.labels), scores=self.scores, skip_epochs=self.skip_epochs)
        checkpoint = None if self.folder is None else self.folder / f"{stage}.safetensors"
        if checkpoint is not None and checkpoint.is_file():
            load_checkpoint(checkpoint, training, tracker)
        while tracker.epoch < self.budget.epochs:
            training.run_epoch(tracker.epoch, tracker.update)
            _check_finite(training, stage, tracker.epoch + 1)  # before the tracker is at a loss
            tracker.end_epoch()
            if checkpoint is not None:
                save_checkpoint(checkpoint, training, tracker)
            self.on_epoch(stage, tracker.epoch, self.budget.epochs)
        return training, tracker


def watched(lesson: Lesson, tracker: Tracker) -> dict[str, npt.NDArray[np.float64]]:
    """Every score of a tracker, by name, of the lesson's samples: (samples,) nan for those who were left out."""
    return {name: lesson.own(tracker.scores(name)) for name in lesson.scores}


def trained(lesson: Lesson, objective: Objective | None = None) -> Fitted:
    """One training and what the tracker saw of it."""
    training, tracker = lesson.train(objective=objective)
    return Fitted(training, watched(lesson, tracker))


def trained_without(lesson: Lesson, name: str, verdicts: Verdicts) -> Fitted:
    """A training without the flagged samples; the verdicts' scores under the recipe's name."""
    training, tracker = lesson.on_part(lesson.rows[~verdicts.is_flagged]).train("retraining")
    scores = watched(lesson, tracker) | {name: verdicts.scores}
    return Fitted(training, scores, verdicts=verdicts, weights=(~verdicts.is_flagged).astype(np.float64))


def _check_finite(training: Training, stage: str, epoch: int) -> None:
    weights = [weight for weight in training.network.parameters() if weight.requires_grad]
    if not torch.stack([weight.isfinite().all() for weight in weights]).all():
        raise DivergedError(
            f"{stage} diverged in epoch {epoch} of {training.budget.epochs}: weights are infinite or no numbers. "
            f"A learning rate below {training.budget.rate(epoch - 1):g} may help"
        )
