"""Cross-entropy training that also predicts held-out samples."""

from collections.abc import Mapping

import torch
from torch import Tensor

from undermargin.training.engine import Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective


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
