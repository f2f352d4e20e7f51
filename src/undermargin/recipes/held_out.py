"""Cross-entropy on some samples, with an eye on others that are held out."""

from collections.abc import Mapping

import torch
from torch import Tensor

from undermargin.training.engine import Rows
from undermargin.training.network import Training
from undermargin.training.objective import Objective


class HeldOut(Objective):
    """Keeps the logits of held-out samples: those of the last look, or of the one that agreed best with the labels."""

    def __init__(self, rows: Rows, *, is_best_kept: bool) -> None:
        self.rows = rows
        self.is_best_kept = is_best_kept
        self.logits = torch.zeros(0)
        self.agreement = torch.tensor(-1.0)

    def begin_epoch(self, training: Training, epoch: int, generator: torch.Generator) -> None:  # noqa: ARG002
        """Look at what the epoch before has led to."""
        if self.is_best_kept and epoch:
            self.look(training)

    def look(self, training: Training) -> None:
        """Predict the held-out samples."""
        logits = training.outputs(self.rows).cpu()
        labels = training.labels.cpu()[torch.from_numpy(self.rows)]
        agreement = (logits.argmax(1) == labels).float().mean()
        if not self.is_best_kept or agreement > self.agreement:
            self.logits, self.agreement = logits, agreement

    def tensors(self) -> dict[str, Tensor]:
        """What was kept."""
        return {"logits": self.logits, "agreement": self.agreement}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """What was kept."""
        self.logits, self.agreement = tensors["logits"].cpu(), tensors["agreement"].cpu()
