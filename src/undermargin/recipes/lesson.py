"""What a recipe is given: a noisy training set, a network, a budget, and the training loop."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from undermargin.errors import InputError
from undermargin.models.group import Group
from undermargin.recipes.fitted import Fitted
from undermargin.tracking.tracker import Tracker
from undermargin.training.engine import Budget, Rows
from undermargin.training.loop import Loop
from undermargin.training.network import NetworkPlan, Training
from undermargin.training.objective import Objective
from undermargin.training.retrain import for_part
from undermargin.verdicts.record import Verdicts

Mask = npt.NDArray[np.bool_]

OnEpoch = Callable[[str, int, int], None]  # stage, epochs ended, epochs in all


@dataclass(frozen=True, eq=False)
class Known:
    """What is known about the noise besides the labels; most recipes need none of it."""

    noise_rate: float | None = None  # share of wrong labels
    pattern: Literal["uniform", "asymmetric"] | None = None
    is_clean: Mask | None = None  # (samples,) whether the label is right: for the oracle
    trusted: Rows | None = None  # indices of some samples whose true labels are known
    true_labels: Rows | None = None  # (samples,) read for the trusted samples only

    def need(self, name: str) -> Any:
        """A field that the recipe requires; raises if it is not known."""
        value = getattr(self, name)
        if value is None:
            raise InputError(f"this recipe needs to know {NEEDS[name]}; pass known=Known({name}=...)")
        return value

    def check(self, num_samples: int) -> None:
        """Raise for values that cannot belong to this many samples."""
        if self.noise_rate is not None and not 0 <= self.noise_rate < 1:
            raise InputError(f"the noise rate is {self.noise_rate}, expected a share from 0 to less than 1")
        for name in ("is_clean", "true_labels"):
            value = getattr(self, name)
            if value is not None and len(value) != num_samples:
                raise InputError(f"{name} has {len(value)} entries, expected {num_samples}")

    def only(self, names: tuple[str, ...]) -> "Known":
        """These fields only."""
        return Known(**{name: getattr(self, name) for name in names})

    def digest(self) -> str:
        """A short checksum of everything that is known."""
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
    """One training. A recipe with several makes each of them from the first with `replace`."""

    plan: NetworkPlan
    labels: Rows  # (samples,) followed by those of the test set, if there is one
    rows: Rows  # samples to train on
    num_classes: int
    budget: Budget
    seed: int
    known: Known = Known()
    scores: tuple[str, ...] = ("aum",)  # what the tracker watches
    folder: Path | None = None  # for checkpoints; None: a killed training starts again
    on_epoch: OnEpoch = lambda stage, epoch, epochs: None  # noqa: ARG005
    num_outputs: int = 0  # 0: the number of classes
    skip_epochs: int = 0  # that the tracker does not count

    def with_networks(self, number: int) -> "Lesson":
        """The same lesson with several networks side by side."""
        make = partial(Group, self.plan.make_model, number)
        return replace(self, plan=replace(self.plan, make_model=make))

    def shortened(self, epochs: int) -> "Lesson":
        """The first epochs of the lesson: the learning rate drops where it would have, or not at all."""
        drops = tuple(share * self.budget.epochs / epochs for share in self.budget.drops)
        budget = replace(self.budget, epochs=epochs, drops=tuple(share for share in drops if share < 1))
        return replace(self, budget=budget)

    def on_part(self, rows: Rows) -> "Lesson":
        """The same lesson on these samples, with smaller batches so that the number of iterations is kept."""
        return replace(self, rows=rows, budget=for_part(self.budget, len(rows), len(self.rows)))

    def own(self, values: Tensor | npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """The values of the training samples, from those of all samples."""
        if isinstance(values, Tensor):
            values = values.detach().cpu().numpy()
        return np.asarray(values, dtype=np.float64)[self.rows]

    def tracker(self, num_samples: int) -> Tracker:
        """A tracker of this lesson's scores; with an extra output, it keeps held-out probabilities, too."""
        has_extra = self.num_outputs > self.num_classes
        return Tracker(
            num_samples,
            scores=self.scores,
            skip_epochs=self.skip_epochs,
            probabilities=self.num_classes if has_extra else None,
        )

    def train(
        self,
        stage: str = "training",
        objective: Objective | None = None,
        *,
        weights: Mapping[str, Tensor] | None = None,
    ) -> tuple[Training, Tracker]:
        """A complete training and its tracker; resumes from the checkpoint of this stage, if there is one.

        `weights` are the weights to start from, as `Training.network.state_dict()` gives them.
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
        tracker = self.tracker(len(self.labels))
        Loop(
            self.budget.epochs,
            stage,
            checkpoint=None if self.folder is None else self.folder / f"{stage}.safetensors",
            on_epoch=lambda ended: self.on_epoch(stage, ended.epoch, self.budget.epochs),
        ).run(training, tracker)
        return training, tracker


def watched(lesson: Lesson, tracker: Tracker) -> dict[str, npt.NDArray[np.float64]]:
    """Every score of a tracker, by name, for the lesson's samples: (samples,), nan for samples that were left out."""
    return {name: lesson.own(tracker.scores(name)) for name in lesson.scores}


def trained(lesson: Lesson, objective: Objective | None = None) -> Fitted:
    """One training, and the scores of its tracker."""
    training, tracker = lesson.train(objective=objective)
    return Fitted(training, watched(lesson, tracker))


def trained_without(lesson: Lesson, name: str, verdicts: Verdicts) -> Fitted:
    """A training without the flagged samples; the verdicts' scores under the recipe's name."""
    training, tracker = lesson.on_part(lesson.rows[~verdicts.is_flagged]).train("retraining")
    scores = watched(lesson, tracker) | {name: verdicts.scores}
    return Fitted(training, scores, verdicts=verdicts, weights=(~verdicts.is_flagged).astype(np.float64))
