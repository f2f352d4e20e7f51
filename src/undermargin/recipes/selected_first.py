"""Co-teaching on selected samples, with the remaining candidates added later (Chen et al. 2019)."""

import torch
from torch import Tensor

from undermargin.recipes.co_teaching import cross_entropies
from undermargin.training.network import Training
from undermargin.training.objective import Objective, Step, weighted


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
