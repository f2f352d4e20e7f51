"""The logits of a whole training in a file: any score can be computed from them later, without training again."""

import math
import os
from pathlib import Path

import torch
from torch import Tensor

from undermargin.errors import FolderError
from undermargin.recipes import Lesson
from undermargin.tracking.tracker import Tracker
from undermargin.training.objective import Objective, Step

MOST_BYTES = 2**29  # of one file: CIFAR-10 at the paper's size fits, ImageNet does not
REPLAYED_TOGETHER = 8192  # samples


class Record(Objective):
    """Cross-entropy that writes every training sample's logits to a file: (epochs, samples, outputs).

    The file is written in place. A resumed training runs its last epoch again and writes the same numbers again.
    """

    def __init__(self, path: Path, lesson: Lesson, *, is_whole: bool = False) -> None:
        self.path, self.lesson = path, lesson
        shape, self.dtype = _form(lesson)
        try:
            # a whole file is only read: the mapping is private, and a missing or short file is an error
            flat = torch.from_file(str(path), shared=not is_whole, size=math.prod(shape), dtype=self.dtype)
        except RuntimeError as error:
            raise FolderError(f"{path} cannot be read: {error}; delete its folder to train again") from None
        self.logits: Tensor = flat.view(shape)

    @staticmethod
    def fits(lesson: Lesson) -> bool:
        """Whether the logits of this training are few enough to be kept."""
        shape, dtype = _form(lesson)
        return math.prod(shape) * dtype.itemsize <= MOST_BYTES

    def loss(self, step: Step) -> Tensor:
        """Write the logits of this step."""
        self.logits[step.epoch, step.indices.cpu()] = step.outputs.detach().cpu().to(self.dtype)
        return super().loss(step)

    def tensors(self) -> dict[str, Tensor]:
        """Nothing for the checkpoint; but what the epoch wrote must be on disk before the checkpoint counts it."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        return {}

    def replayed(self) -> Tracker:
        """A tracker of the lesson's scores that has observed the recorded training: (training samples,)."""
        labels = torch.from_numpy(self.lesson.labels[self.lesson.rows])
        tracker = self.lesson.tracker(len(labels))
        for epoch in self.logits:
            for part in torch.split(torch.arange(len(labels)), REPLAYED_TOGETHER):
                tracker.update(epoch[part].float(), labels[part], part)
            tracker.end_epoch()
        return tracker


def _form(lesson: Lesson) -> tuple[tuple[int, int, int], torch.dtype]:
    """Shape and type of the file. With bf16 autocast the network's outputs are bf16, so nothing is rounded."""
    shape = (lesson.budget.epochs, len(lesson.rows), lesson.num_outputs or lesson.num_classes)
    return shape, torch.bfloat16 if lesson.plan.precision == "bf16" else torch.float32
