"""Second-split forgetting: memorized samples are soon forgotten when training continues on other samples
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
    """Number of repetitions, and the cutoff; the authors rank samples and define no cutoff."""

    num_seeds: int = 1  # scores are averaged over seeds; the authors use 5, each further one costs two trainings
    cutoff: str | float | Cutoff = "gaussian"  # needs no prior knowledge; use "rate:0.4" if the noise rate is known

    def fit(self, lesson: Lesson) -> Fitted:
        """Train on one half, continue on the other and record when the first is forgotten; repeat with the halves
        swapped; then train without the flagged samples."""
        shuffled = np.random.default_rng(lesson.seed).permutation(lesson.rows)
        halves = np.sort(shuffled[::2]), np.sort(shuffled[1::2])
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
    """For how many epochs of training on `other` each of the `learned` samples is remembered: (learned,).

    0 if it was never learned; the number of epochs plus 1 if it is never forgotten.
    """
    training, _ = lesson.on_part(learned).train(f"first{name}")
    memory = Memory(learned)
    training, _ = lesson.on_part(other).train(f"second{name}", memory, weights=training.network.state_dict())
    memory.ask(training, lesson.budget.epochs)
    return memory.until.cpu().numpy().astype(np.float64)


class Memory(Objective):
    """Cross-entropy; before every epoch, checks which samples outside the training set are still classified correctly.

    Predictions are made in evaluation mode. The authors leave batch normalization in training mode, where predictions
    depend on the other samples in the batch.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.until = torch.zeros(len(rows))  # the last check, counted from 1, at which the sample was correct

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Check before the epoch."""
        self.ask(training, epoch)

    def ask(self, training: Training, epochs: int) -> None:
        """Record which samples are still classified correctly after this number of epochs."""
        labels = training.labels[torch.from_numpy(self.rows)]
        is_correct = first(training.outputs(self.rows)).argmax(1) == labels
        self.until = torch.where(is_correct, epochs + 1.0, self.until.to(is_correct.device))

    def tensors(self) -> dict[str, Tensor]:
        """The results so far, for a checkpoint."""
        return {"until": self.until}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the results."""
        self.until = tensors["until"]
