"""INCV: iterated cross-validation selects samples whose held-out predictions match their labels; two networks are then
trained by co-teaching, first on the selected samples only (Chen et al. 2019)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax
from torch import Tensor

from undermargin.recipes.co_teaching import cross_entropies
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, Mask, watched
from undermargin.tracking.run import Run
from undermargin.training.engine import Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step, weighted
from undermargin.verdicts.identify import identify

Values = npt.NDArray[np.float64]

MIN_CANDIDATES = 4  # the smallest number that can be split into halves and trained on
HIGH_NOISE, MEDIUM_NOISE = 0.6, 0.3  # estimated rates above which the authors use the best epoch in fewer rounds


@dataclass
class Selection:
    """The state of the cross-validation."""

    is_selected: Mask  # (samples,)
    is_candidate: Mask  # (samples,) neither selected nor discarded
    num_refused: Values  # (samples,) rounds before the sample was selected; all rounds if it never was
    losses: Values  # (samples,) when the sample was last held out
    noise_rate: float = 0.0  # estimated in the first training

    def judge(self, held_out: Rows, labels: Rows, logits: Values, *, number: int) -> Mask:
        """Select the held-out samples whose labels are predicted in this round; returns which: (held out,) bool."""
        is_agreed = np.asarray(logits.argmax(1) == labels)
        self.losses[held_out] = -log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
        self.is_selected[held_out[is_agreed]] = True
        self.is_candidate[held_out[is_agreed]] = False
        self.num_refused[held_out[is_agreed]] = number
        return is_agreed


@dataclass(frozen=True)
class Incv:
    """The authors' settings. The kind of noise, uniform or asymmetric, must be known."""

    num_rounds: int = 4  # of two trainings each
    selection_share: float = 0.25  # epochs of each of these trainings, as a share: 50 of the authors' 200
    max_discarded: float = 2.0  # at most this many samples are discarded per selected sample
    gradual_epochs: int = 10  # epochs of the final training until the full share is dropped
    candidates_after: float = 0.2  # share of the final training on selected samples only: 40 of 200 epochs
    candidates_after_hard: float = 0.4  # the same for asymmetric or strong noise: 80 of 200 epochs

    def fit(self, lesson: Lesson) -> Fitted:
        """Select samples by cross-validation, then train two networks; the first one is the classifier."""
        is_uniform = lesson.known.need("pattern") == "uniform"
        selection = self.select(lesson, is_uniform=is_uniform)
        selected = np.flatnonzero(selection.is_selected)
        last = lesson.on_part(selected).with_networks(2)
        is_hard = not is_uniform or selection.noise_rate > HIGH_NOISE
        teaching = SelectedFirst(
            torch.from_numpy(selection.is_selected),
            torch.from_numpy(np.flatnonzero(selection.is_candidate)),
            noise_rate=noise_among_selected(selection.noise_rate, lesson.num_classes if is_uniform else 2),
            gradual_epochs=self.gradual_epochs,
            candidates_after=self.candidates_after_hard if is_hard else self.candidates_after,
        )
        training, tracker = last.train("teaching", teaching)
        scores = lesson.own(-selection.num_refused - selection.losses / (1 + selection.losses))
        run = Run(scores=scores, labels=lesson.labels[lesson.rows], score="incv")
        return Fitted(
            training,
            watched(lesson, tracker) | {"incv": scores},
            verdicts=identify(run, -float(self.num_rounds)),
            weights=lesson.own(selection.is_selected.astype(np.float64)),
            notes=(f"{selection.noise_rate:.1%} of the labels are estimated to be wrong",),
        )

    def select(self, lesson: Lesson, *, is_uniform: bool) -> Selection:
        """Rounds of twofold cross-validation; selected samples are part of the training set of all later rounds."""
        draw = np.random.default_rng(lesson.seed)
        size = len(lesson.labels)
        selection = Selection(
            is_selected=np.zeros(size, bool),
            is_candidate=np.isin(np.arange(size), lesson.rows),
            num_refused=np.full(size, float(self.num_rounds)),
            losses=np.zeros(size),
        )
        for number in range(self.num_rounds):
            candidates = draw.permutation(np.flatnonzero(selection.is_candidate))
            if len(candidates) < MIN_CANDIDATES:
                break
            halves, known = np.array_split(candidates, 2), np.flatnonzero(selection.is_selected)
            is_best_kept = number < num_rounds_of_best(selection.noise_rate, is_uniform=is_uniform)
            for half, (shown, held_out) in enumerate((halves, halves[::-1])):
                rows = np.sort(np.concatenate([known, shown]))
                logits = self._cross_validated(lesson, f"round{number}-{half}", rows, held_out, is_best_kept)
                is_agreed = selection.judge(held_out, lesson.labels[held_out], logits, number=number)
                if (number, half) == (0, 0):
                    selection.noise_rate = estimated_noise(float(is_agreed.mean()), lesson.num_classes)
                if is_uniform:  # networks learn to predict asymmetric noise, so its losses need not be large
                    ratio = min(self.max_discarded, selection.noise_rate / (1 - selection.noise_rate))
                    given_up = discarded(held_out, selection.losses[held_out], is_agreed, ratio)
                    selection.is_candidate[given_up] = False
        return selection

    def _cross_validated(
        self, lesson: Lesson, stage: str, rows: Rows, held_out: Rows, is_best_kept: bool
    ) -> npt.NDArray[np.float64]:
        """Logits of held-out samples after training on the others: (held out, classes)."""
        epochs = max(1, round(self.selection_share * lesson.budget.epochs))
        objective = HeldOut(held_out, is_best_kept=is_best_kept)
        training, _ = replace(lesson, rows=rows).shortened(epochs).train(stage, objective)
        objective.look(training)
        return objective.logits.double().numpy()


class HeldOut(Objective):
    """Keeps the logits of held-out samples, from the last epoch or from the one that agreed best with the labels."""

    def __init__(self, rows: Rows, *, is_best_kept: bool) -> None:
        self.rows = rows
        self.is_best_kept = is_best_kept
        self.logits = torch.zeros(0)
        self.agreement = torch.tensor(-1.0)

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Predict the held-out samples with the network after the previous epoch."""
        if self.is_best_kept and epoch:
            self.look(training)

    def look(self, training: Training) -> None:
        """Predict the held-out samples and keep the logits if they are the ones wanted."""
        logits = training.outputs(self.rows).cpu()
        labels = training.labels.cpu()[torch.from_numpy(self.rows)]
        agreement = (logits.argmax(1) == labels).float().mean()
        if not self.is_best_kept or agreement > self.agreement:
            self.logits, self.agreement = logits, agreement

    def tensors(self) -> dict[str, Tensor]:
        """The kept logits and their agreement, for a checkpoint."""
        return {"logits": self.logits, "agreement": self.agreement}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the kept logits and their agreement."""
        self.logits, self.agreement = tensors["logits"].cpu(), tensors["agreement"].cpu()


class SelectedFirst(Objective):
    """Trains each network on the samples of a batch that have the smallest losses under the other network.

    The number of samples used is the expected number of correctly labeled ones among the selected samples of the batch;
    candidates compete with selected samples for these places.
    """

    def __init__(
        self,
        is_selected: Tensor,
        candidates: Tensor,
        *,
        noise_rate: float,
        gradual_epochs: int,
        candidates_after: float,
    ) -> None:
        self.is_selected = is_selected  # (samples,)
        self.candidates = candidates  # indices
        self.noise_rate = noise_rate  # among the selected samples
        self.gradual_epochs = gradual_epochs
        self.candidates_after = candidates_after  # share of the training
        self.drawn = candidates[:0]  # the candidates of this epoch, in random order

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:
        """Shuffle the candidates, once they take part."""
        self.is_selected = self.is_selected.to(training.device)
        is_time = epoch >= int(self.candidates_after * training.budget.epochs)
        self.drawn = (
            self.candidates[torch.randperm(len(self.candidates), generator=generator)]
            if is_time
            else self.candidates[:0]
        )

    def batches(self, order: Tensor, batch_size: int, epoch: int) -> list[Tensor]:
        """Batches of selected samples, each followed by its share of the candidates, at most half a batch."""
        batches = super().batches(order, batch_size, epoch)
        size = min(len(self.drawn) * batch_size // len(order), batch_size // 2)
        if not size:
            return batches
        parts = torch.split(self.drawn, size)
        return [torch.cat([batch, part]) for batch, part in zip(batches, parts, strict=False)] + batches[len(parts) :]

    def loss(self, step: Step) -> Tensor:
        """The sum of the two networks' mean losses, each on the small-loss samples of the other."""
        losses = cross_entropies(step.outputs, step.labels)
        left_out = self.noise_rate * min(1.0, step.epoch / max(self.gradual_epochs, 1))
        num_kept = (self.is_selected[step.indices].sum() * (1 - left_out)).round().clamp(min=1)
        is_easy = (losses.detach().argsort(0).argsort(0) < num_kept).float()
        return weighted(losses[:, 0], is_easy[:, 1]) + weighted(losses[:, 1], is_easy[:, 0])


def estimated_noise(agreement: float, num_classes: int) -> float:
    """The rate of uniform noise at which predictions and held-out labels agree this often.

    Assumes that the predictions are as noisy as the labels that the network was trained on.

    >>> estimated_noise(0.6**2 + 0.4**2 / 9, 10)
    0.4
    """
    rates = np.arange(1, 1000) / 1000
    agreements = (1 - rates) ** 2 + rates**2 / (num_classes - 1)
    enough = np.flatnonzero(agreements <= agreement + 1e-12)
    return float(rates[enough[0] if len(enough) else agreements.argmin()])


def noise_among_selected(noise_rate: float, num_classes: int) -> float:
    """The share of wrong labels among samples whose label and prediction agree: both right, or both equally wrong."""
    wrong, right = noise_rate**2, (1 - noise_rate) ** 2
    return wrong / (wrong + (num_classes - 1) * right)


def num_rounds_of_best(noise_rate: float, *, is_uniform: bool) -> int:
    """The number of rounds that use the predictions of the best epoch; later rounds use those of the last epoch."""
    if not is_uniform or noise_rate > HIGH_NOISE:
        return 1
    return 2 if noise_rate > MEDIUM_NOISE else 4


def discarded(rows: Rows, losses: Values, is_agreed: Mask, ratio: float) -> Rows:
    """The unselected rows among the `ratio` x (number selected) rows with the largest losses."""
    order = np.argsort(-losses, kind="stable")[: int(ratio * is_agreed.sum())]
    return rows[order[~is_agreed[order]]]
