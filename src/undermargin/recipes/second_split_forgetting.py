"""Second-split forgetting: what was learned by heart is soon forgotten when training goes on with other samples
(Maini et al. 2022)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.cutoffs import Cutoff
from undermargin.models.group import first
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.tracking.run import Run
from undermargin.training.engine import Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective
from undermargin.verdicts.identify import identify

NAME = "second_split_forgetting"


@dataclass(frozen=True)
class SecondSplitForgetting:
    """How often it is repeated, and where suspicious begins: the authors have a ranking and no cutoff."""

    num_seeds: int = 1  # whose scores are averaged; the authors' 5 cost two trainings more each
    cutoff: str | float | Cutoff = "gaussian"  # needs nothing to be known; "rate:0.4" where the noise rate is

    def fit(self, lesson: Lesson) -> Fitted:
        """Learn one half, go on with the other and watch the first; the same with the halves swapped; then train
        without the flagged."""
        lot = np.random.default_rng(lesson.seed).permutation(lesson.rows)
        halves = np.sort(lot[::2]), np.sort(lot[1::2])
        scores = np.zeros(len(lesson.labels))
        for repeat in range(self.num_seeds):
            again = replace(lesson, seed=lesson.seed + repeat, scores=("aum",))
            for name, learned, other in (("a", *halves), ("b", *halves[::-1])):
                scores[learned] += remembered(again, f"{repeat}{name}", learned, other) / self.num_seeds
        labels = lesson.labels[lesson.rows]
        return trained_without(
            lesson, NAME, identify(Run(scores=lesson.own(scores), labels=labels, score=NAME), self.cutoff)
        )


def remembered(lesson: Lesson, name: str, learned: Rows, other: Rows) -> npt.NDArray[np.float64]:
    """For how many epochs of training on `other` samples each of the `learned` ones is remembered: (learned,).

    0: it was never learned; one more than there are epochs: it is not forgotten at all.
    """
    training, _ = lesson.on_part(learned).train(f"first{name}")
    memory = Memory(learned)
    training, _ = lesson.on_part(other).train(f"second{name}", memory, weights=training.network.state_dict())
    memory.ask(training, lesson.budget.epochs)
    return memory.until.cpu().numpy().astype(np.float64)


class Memory(Objective):
    """Cross-entropy; before every epoch, samples that are not trained on are asked for their labels.

    They are asked in evaluation mode: the authors leave batch normalisation in training mode, by which the answers
    depend on who is asked together.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.until = torch.zeros(len(rows))  # the number of the last question that was answered correctly, from 1

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """One question."""
        self.ask(training, epoch)

    def ask(self, training: Training, epochs: int) -> None:
        """Who is remembered after so many epochs."""
        labels = training.labels[torch.from_numpy(self.rows)]
        is_correct = first(training.outputs(self.rows)).argmax(1) == labels
        self.until = torch.where(is_correct, epochs + 1.0, self.until.to(is_correct.device))

    def tensors(self) -> dict[str, Tensor]:
        """The answers so far."""
        return {"until": self.until}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The answers so far."""
        self.until = tensors["until"]
