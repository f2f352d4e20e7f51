"""Data parameters: a learned temperature for every sample or class; doubtful ones grow hot and count less
(Saxena et al. 2019)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.errors import InputError
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, watched
from undermargin.training.objective import Objective, Step

AUTHORS_BATCH_SIZE = 128


@dataclass(frozen=True)
class Temperatures:
    """How one kind of temperature is learned: where it starts, how fast it moves, how it is drawn back to 1."""

    start: float = 1.0
    learning_rate: float = 0.2  # at the authors' batch size
    weight_decay: float = 0.0  # of its logarithm, at every step in which it is met


@dataclass(frozen=True)
class DataParameters:
    """Which temperatures are learned. The defaults are the authors' for noisy labels: one for every sample.

    Where a sample has both, its temperature is their sum. `CLASSES` and `JOINT` hold the authors' settings for those.
    """

    samples: Temperatures | None = Temperatures()
    classes: Temperatures | None = None
    momentum: float = 0.9
    bound: float = 20.0  # temperatures stay between 1 / bound and bound

    def fit(self, lesson: Lesson) -> Fitted:
        """Train once; the classifier's own logits are used without any temperature."""
        heat = Heat(len(lesson.labels), lesson.num_outputs or lesson.num_classes, self)
        training, tracker = lesson.train(objective=heat)
        scores = watched(lesson, tracker)
        if self.samples is not None:
            scores["data_parameters"] = lesson.own(-heat.logs["samples"].cpu())
        return Fitted(training, scores)


CLASSES = DataParameters(samples=None, classes=Temperatures(learning_rate=0.1, weight_decay=1e-4))
# the authors' start at 0.001 is below their own bound, which lifts it to 1/20 at the first step
JOINT = DataParameters(samples=Temperatures(1 / 20, 0.8, 1e-8), classes=Temperatures(1.0, 0.1, 1e-4))


class Heat(Objective):
    """Cross-entropy of logits divided by temperatures that are learned beside the weights, as logarithms."""

    def __init__(self, num_samples: int, num_classes: int, settings: DataParameters) -> None:
        kinds = {"samples": (settings.samples, num_samples), "classes": (settings.classes, num_classes)}
        self.kinds = {name: kind for name, (kind, _) in kinds.items() if kind is not None}
        if not self.kinds:
            raise InputError("no temperature is learned: neither of samples nor of classes; choose at least one")
        self.settings = settings
        self.logs = {name: torch.full((kinds[name][1],), math.log(kind.start)) for name, kind in self.kinds.items()}
        self.momenta = {name: torch.zeros_like(logs) for name, logs in self.logs.items()}

    def loss(self, step: Step) -> Tensor:
        """The batch's mean; the temperatures move as well, by the gradient at where they were."""
        self._to(step.outputs.device)
        met = {"samples": step.indices, "classes": step.labels}
        parts = {name: logs[met[name]].exp() for name, logs in self.logs.items()}
        temperatures = torch.stack(list(parts.values())).sum(0)
        slopes = temperature_slopes(step.outputs.detach(), step.labels, temperatures) / AUTHORS_BATCH_SIZE
        for name, part in parts.items():
            decay = self.kinds[name].weight_decay * part.log()
            self._move(name, met[name], slopes * part + decay)
        return F.cross_entropy(step.outputs / temperatures[:, None], step.labels)

    def _move(self, name: str, met: Tensor, gradients: Tensor) -> None:
        """A step with momentum of those that were met; the others' momentum waits for them. A class that was met
        several times is written several times with the same number."""
        logs, momenta = self.logs[name], self.momenta[name]
        momenta[met] = momenta[met] * self.settings.momentum
        momenta.index_add_(0, met, gradients)
        limit = math.log(self.settings.bound)
        logs[met] = (logs[met] - self.kinds[name].learning_rate * momenta[met]).clamp(-limit, limit)

    def _to(self, device: torch.device) -> None:
        self.logs = {name: values.to(device) for name, values in self.logs.items()}
        self.momenta = {name: values.to(device) for name, values in self.momenta.items()}

    def tensors(self) -> dict[str, Tensor]:
        """The temperatures' logarithms and momenta."""
        logs = {f"log.{name}": values for name, values in self.logs.items()}
        return logs | {f"momentum.{name}": values for name, values in self.momenta.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The temperatures' logarithms and momenta."""
        self.logs = {name: tensors[f"log.{name}"] for name in self.kinds}
        self.momenta = {name: tensors[f"momentum.{name}"] for name in self.kinds}


def temperature_slopes(logits: Tensor, labels: Tensor, temperatures: Tensor) -> Tensor:
    """How fast each sample's loss grows with its temperature: (batch, classes), (batch,), (batch,) to (batch,).

    It falls where the label's logit is below the expected one: heat relieves a label that does not fit. Written out,
    as gradients taken with the weights' would be scaled in half precision.
    """
    expected = ((logits / temperatures[:, None]).softmax(1) * logits).sum(1)
    assigned = logits.gather(1, labels[:, None])[:, 0]
    return (assigned - expected) / temperatures**2
