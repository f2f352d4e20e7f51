"""MentorNet: a small network, trained beforehand, weights every sample by its loss (Jiang et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.errors import InputError
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, Mask, watched
from undermargin.recipes.mentor import NUM_PERCENTS, Mentor, Points, predefined, teach
from undermargin.storage.tensors import load_tensors, save_tensors
from undermargin.training.engine import Rows
from undermargin.training.objective import Objective, Step

MENTOR = "mentor.safetensors"
NOISE_RATES = (0.2, 0.4, 0.8)  # of the authors' experiments; rates in between are interpolated
NAMES = {"predefined": "mentornet", "data_driven": "mentornet_dd"}
PERCENTILES = {"predefined": (0.75, 0.75, 0.5), "data_driven": (0.8, 0.6, 0.5)}


@dataclass(frozen=True)
class MentorNet:
    """How the mentor is trained and how its weights are used. Times are percentages of the training."""

    curriculum: Literal["predefined", "data_driven"] = "predefined"
    percentile: float | None = None  # quantile of the batch's losses to compare with; None: from the noise rate
    average_decay: float = 0.5  # of the moving average of that quantile
    burn_in: int = 0  # until then all weights are 1
    is_time_frozen: bool = False  # after the burn-in, the mentor is always asked as if the time were `burn_in`
    dropout: tuple[tuple[float, int], ...] = ((0.5, 17), (0.05, 83))  # (share of weights set to 0, duration) pairs
    num_points: int = 80_000  # of the grid: the authors' 100,000 minus the fifth that they hold out
    num_steps: int = 2_000  # to train the mentor with large batches; the authors take 30,000 with small ones

    def fit(self, lesson: Lesson) -> Fitted:
        """Train the mentor, then the classifier."""
        percentile = self._percentile(lesson)
        mentored = Mentored(self._mentor(lesson, percentile), percentile, len(lesson.labels), self)
        training, tracker = lesson.train(objective=mentored)
        weights = lesson.own(mentored.weights().cpu())
        return Fitted(training, watched(lesson, tracker) | {NAMES[self.curriculum]: weights}, weights=weights)

    def _percentile(self, lesson: Lesson) -> float:
        if self.percentile is not None:
            return self.percentile
        is_predefined = self.curriculum == "predefined"
        known, trusted = lesson.known, None if is_predefined else _trusted(lesson)
        noise_rate = known.need("noise_rate") if trusted is None else 1 - _is_right(lesson, trusted).mean()
        return float(np.interp(noise_rate, NOISE_RATES, PERCENTILES[self.curriculum]))

    def _mentor(self, lesson: Lesson, percentile: float) -> Mentor:
        path = None if lesson.folder is None else lesson.folder / MENTOR
        if path is not None and path.is_file():
            mentor = Mentor().requires_grad_(False)
            mentor.load_state_dict(load_tensors(path)[1])
            return mentor
        if self.curriculum == "predefined":
            mentor = teach(predefined(self.num_points, lesson.seed), self.num_steps, lesson.seed)
        else:
            points = data_driven(lesson, percentile, self.burn_in if self.is_time_frozen else None)
            mentor = teach(points, self.num_steps, lesson.seed)
        if path is not None:
            save_tensors(path, mentor.state_dict())
        return mentor


DATA_DRIVEN = MentorNet(
    curriculum="data_driven", burn_in=18, is_time_frozen=True, dropout=((0.5, 17), (0.05, 78), (0.9, 5))
)


class Mentored(Objective):
    """The mean of losses times the mentor's weights, some of which are set to 0 at random.

    Records the weights of the second half of the training, before this dropout.
    """

    def __init__(self, mentor: Mentor, percentile: float, num_samples: int, settings: MentorNet) -> None:
        self.mentor = mentor
        self.percentile = percentile
        self.settings = settings
        self.dropout = dropout_rates(settings.dropout)
        self.average = torch.zeros(())  # the authors' initial value; it has no effect after a few steps
        self.given = torch.zeros(num_samples, 2)  # sum of weights, number of times shown

    def loss(self, step: Step) -> Tensor:
        """Weighted losses divided by the batch size, so that a batch of doubtful samples has little effect."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        weights = self._weigh(step, losses.detach())
        return (losses * weights * self._kept(step).to(weights.device)).mean()

    def _weigh(self, step: Step, losses: Tensor) -> Tensor:
        decay = self.settings.average_decay
        self.average = decay * self.average.to(losses.device) + (1 - decay) * losses.quantile(self.percentile)
        time = percent(step)
        if time < self.settings.burn_in:
            return torch.ones_like(losses)
        time = self.settings.burn_in if self.settings.is_time_frozen else time
        weights = self.mentor.to(losses.device).weigh(losses, self.average, time)
        if step.share >= 0.5:  # early weights depend on the curriculum more than on the samples
            shown = torch.stack([weights, torch.ones_like(weights)], 1)
            self.given = self.given.to(losses.device).index_add(0, step.indices, shown)
        return weights

    def _kept(self, step: Step) -> Tensor:
        """The dropout mask, 1 for weights that are used and 0 for the others, at least one of them 1: (batch,).

        The rate is looked up at the actual time. The authors freeze this lookup along with the mentor's time, so their
        data-driven schedule never reaches its end.
        """
        size = len(step.labels)
        order = torch.randperm(size, generator=step.generator)
        return (order < max(1, int(size * (1 - self.dropout[percent(step)])))).float()

    def weights(self) -> Tensor:
        """The mean weight of every sample: (samples,), nan if it was never shown."""
        return self.given[:, 0] / self.given[:, 1]

    def tensors(self) -> dict[str, Tensor]:
        """The moving average and the sums of weights, for a checkpoint."""
        return {"average": self.average, "given": self.given}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the moving average and the sums of weights."""
        self.average, self.given = tensors["average"], tensors["given"]


def dropout_rates(schedule: tuple[tuple[float, int], ...]) -> list[float]:
    """The dropout rate at every percent of the training.

    >>> dropout_rates(((0.5, 17), (0.05, 83)))[15:19]
    [0.5, 0.5, 0.05, 0.05]
    """
    rates = [rate for rate, percents in schedule for _ in range(percents)]
    if len(rates) != NUM_PERCENTS:
        raise InputError(f"the durations in dropout sum to {len(rates)} percent, expected {NUM_PERCENTS}")
    return rates


def percent(step: Step) -> int:
    """The percentage of the training that is completed, from 0 to 99."""
    return min(int(NUM_PERCENTS * step.share), NUM_PERCENTS - 1)


class Diary(Objective):
    """Cross-entropy; records the loss of every sample in every epoch, and the time of each."""

    def __init__(self, rows: Tensor, epochs: int) -> None:
        self.rows = rows  # sorted
        self.losses = torch.zeros(epochs, len(rows))
        self.percents = torch.zeros(epochs, len(rows), dtype=torch.long)

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        device = losses.device
        self.rows, self.losses, self.percents = self.rows.to(device), self.losses.to(device), self.percents.to(device)
        places = torch.searchsorted(self.rows, step.indices)
        self.losses[step.epoch, places] = losses.detach()
        self.percents[step.epoch, places] = percent(step)
        return losses.mean()

    def tensors(self) -> dict[str, Tensor]:
        """The recorded losses and times, for a checkpoint."""
        return {"losses": self.losses, "percents": self.percents}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the recorded losses and times."""
        self.losses, self.percents = tensors["losses"], tensors["percents"]


def data_driven(lesson: Lesson, percentile: float, time: int | None) -> Points:
    """Training data for a mentor, recorded while a network trains on the noisy labels of the trusted samples.

    Each loss is compared with the percentile of its own epoch, as it will be when the mentor is used. The authors use
    the percentile of the whole training here and a different one later, so their mentor is used on inputs that it was
    not trained on. A short training skips some percents: if the mentor is always asked at one `time`, the recorded
    percent nearest to it is used.
    """
    trusted = _trusted(lesson)
    diary = Diary(torch.from_numpy(trusted), lesson.budget.epochs)
    lesson.on_part(trusted).train("trusted", diary)
    losses, percents = diary.losses.cpu(), diary.percents.cpu()
    if time is not None:
        nearest = percents.flatten()[(percents.flatten() - time).abs().argmin()]
        percents = torch.where(percents == nearest, time, percents)
    differences = losses - losses.quantile(percentile, dim=1, keepdim=True)
    is_right = torch.from_numpy(_is_right(lesson, trusted)).float().expand_as(differences)
    return Points(losses.flatten(), differences.flatten(), percents.flatten(), is_right.flatten())


def _trusted(lesson: Lesson) -> Rows:
    trusted: Rows = np.intersect1d(lesson.rows, lesson.known.need("trusted"))
    if not len(trusted):
        raise InputError(f"none of the {len(lesson.rows)} samples is in Known.trusted; expected at least one")
    return trusted


def _is_right(lesson: Lesson, rows: Rows) -> Mask:
    is_right: Mask = lesson.known.need("true_labels")[rows] == lesson.labels[rows]
    return is_right
