"""Data parameters: a learned temperature per sample or class, which rises for doubtful labels and lowers their weight
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
    """How one kind of temperature is learned: initial value, learning rate, and decay towards 1."""

    start: float = 1.0
    learning_rate: float = 0.2  # at the authors' batch size
    weight_decay: float = 0.0  # of the log temperature, applied in the steps whose batch contains it


@dataclass(frozen=True)
class DataParameters:
    """Which temperatures are learned. The defaults are the authors' settings for noisy labels: one per sample.

    With both kinds, the temperature of a sample is the sum of its own and that of its class. `CLASSES` and `JOINT` are
    the authors' settings for class temperatures and for both.
    """

    samples: Temperatures | None = Temperatures()
    classes: Temperatures | None = None
    momentum: float = 0.9
    bound: float = 20.0  # temperatures stay between 1 / bound and bound

    def fit(self, lesson: Lesson) -> Fitted:
        """Train one network; predictions use its logits without temperatures."""
        heat = Heat(len(lesson.labels), lesson.num_outputs or lesson.num_classes, self)
        training, tracker = lesson.train(objective=heat)
        scores = watched(lesson, tracker)
        if self.samples is not None:
            scores["data_parameters"] = lesson.own(-heat.logs["samples"].cpu())
        return Fitted(training, scores)


CLASSES = DataParameters(samples=None, classes=Temperatures(learning_rate=0.1, weight_decay=1e-4))
# the authors start at 0.001, which is below their own bound: the first step raises it to 1/20
JOINT = DataParameters(samples=Temperatures(1 / 20, 0.8, 1e-8), classes=Temperatures(1.0, 0.1, 1e-4))


class Heat(Objective):
    """Cross-entropy of logits divided by temperatures, whose logarithms are learned along with the weights."""

    def __init__(self, num_samples: int, num_classes: int, settings: DataParameters) -> None:
        kinds = {"samples": (settings.samples, num_samples), "classes": (settings.classes, num_classes)}
        self.kinds = {name: kind for name, (kind, _) in kinds.items() if kind is not None}
        if not self.kinds:
            raise InputError("both samples and classes are None; expected temperatures for at least one of them")
        self.settings = settings
        self.logs = {name: torch.full((kinds[name][1],), math.log(kind.start)) for name, kind in self.kinds.items()}
        self.momenta = {name: torch.zeros_like(logs) for name, logs in self.logs.items()}

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch; also takes one gradient step on the temperatures."""
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
        """One SGD step with momentum on the temperatures in the batch; the others keep their value and momentum.

        A class that occurs several times in the batch is assigned the same value several times.
        """
        logs, momenta = self.logs[name], self.momenta[name]
        momenta[met] = momenta[met] * self.settings.momentum
        momenta.index_add_(0, met, gradients)
        limit = math.log(self.settings.bound)
        logs[met] = (logs[met] - self.kinds[name].learning_rate * momenta[met]).clamp(-limit, limit)

    def _to(self, device: torch.device) -> None:
        self.logs = {name: values.to(device) for name, values in self.logs.items()}
        self.momenta = {name: values.to(device) for name, values in self.momenta.items()}

    def tensors(self) -> dict[str, Tensor]:
        """The log temperatures and their momenta, for a checkpoint."""
        logs = {f"log.{name}": values for name, values in self.logs.items()}
        return logs | {f"momentum.{name}": values for name, values in self.momenta.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the log temperatures and their momenta."""
        self.logs = {name: tensors[f"log.{name}"] for name in self.kinds}
        self.momenta = {name: tensors[f"momentum.{name}"] for name in self.kinds}


def temperature_slopes(logits: Tensor, labels: Tensor, temperatures: Tensor) -> Tensor:
    """Derivative of each sample's loss by its temperature: (batch, classes), (batch,), (batch,) -> (batch,).

    It is negative where the label's logit is below the expected logit, so a higher temperature lowers the loss of a
    label that does not fit. Computed by hand, because autograd's gradients would be scaled in half precision.
    """
    expected = ((logits / temperatures[:, None]).softmax(1) * logits).sum(1)
    assigned = logits.gather(1, labels[:, None])[:, 0]
    return (assigned - expected) / temperatures**2
