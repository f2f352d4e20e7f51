"""The state of a tracker: the open epoch, and the reductions of the ended epochs, one per score."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from undermargin.errors import InputError
from undermargin.tracking.epoch import SPARE_ROWS, Epoch
from undermargin.tracking.ranks import max_over_ranks, num_ranks, rank, sum_over_ranks
from undermargin.tracking.scores import SCORES
from undermargin.tracking.settings import Settings
from undermargin.tracking.signals import width
from undermargin.tracking.suggestions import Suggestions

LOGITS_OF = "logits_of"  # name of the tensor of samples whose full logits are recorded


class State:
    """The tensors of a tracker, on the device of the training; AUM alone takes 16 bytes per sample."""

    def __init__(
        self, settings: Settings, num_outputs: int, device: torch.device, *, logits_of: Tensor | None = None
    ) -> None:
        with torch.inference_mode(False):  # tensors made in inference mode could not be modified outside of it
            self._allocate(settings, num_outputs, device, logits_of)
        self.settings = settings
        self.num_outputs = num_outputs
        self.device = device
        self.is_merged = True
        self._is_copy = False  # of sums that rank 0 also holds: cleared before the next observation

    def _allocate(self, settings: Settings, num_outputs: int, device: torch.device, logits_of: Tensor | None) -> None:
        num_samples, classes = settings.num_samples, settings.probabilities
        self.epochs = torch.zeros(num_samples, dtype=torch.int32, device=device)  # in which a sample was observed
        self.ended_losses = torch.zeros(len(SPARE_ROWS), dtype=torch.int64, device=device)
        rows = {name: SCORES[name] for name in settings.scores}
        self.reductions = {
            name: row.reduction(num_samples, width(row.signal, num_outputs), device) for name, row in rows.items()
        }
        self.suggestions = (
            Suggestions(num_samples, len(SPARE_ROWS), settings.suggest, device) if settings.suggest else None
        )
        self.probabilities = torch.zeros(num_samples, classes, dtype=torch.float32, device=device) if classes else None
        self.open = Epoch(
            num_samples,
            [row.signal for row in rows.values()],
            num_outputs,
            device,
            suggestions=self.suggestions,
            probabilities=classes,
            logits_of=logits_of,
        )

    def on(self, device: torch.device) -> "State":
        """This state, or a copy of it on another device."""
        if device == self.device:
            return self
        moved = State(self.settings, self.num_outputs, device, logits_of=self.open.logits_of)
        moved.load(dict(self.tensors()))
        moved.is_merged, moved._is_copy = self.is_merged, self._is_copy
        moved.open.looks_like_probabilities = self.open.looks_like_probabilities
        return moved

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Observe a checked batch."""
        self._drop_copy()
        self.open.update(logits, labels, indices)
        self.is_merged = num_ranks() == 1

    def reduce(self) -> None:
        """Sum the open epoch over the ranks. All ranks hold the sum; only rank 0 keeps it if the epoch continues."""
        self.open.flush()
        if num_ranks() > 1:
            self._drop_copy()
            for tensor in self.open.shared():
                sum_over_ranks(tensor)
            if self.suggestions is not None:
                max_over_ranks(self.suggestions.tensors["rival"][: self.open.num_samples])
            self._is_copy = rank() > 0
        self.is_merged = True

    def _drop_copy(self) -> None:
        if self._is_copy:
            self.open.clear()
            self._is_copy = False

    def end_epoch(self) -> None:
        """Pass the means of the open epoch to the reductions and start a new epoch."""
        for rows in self.open.blocks():
            means, seen = self.open.means(rows)
            by_signal = dict(zip(self.open.signals, means, strict=True))
            for name, reduction in self.reductions.items():
                reduction.observe(rows, by_signal[SCORES[name].signal], seen, self.epochs[rows])
            if self.probabilities is not None:
                self.probabilities[rows] += self.open.probabilities(rows).where(seen[:, None], 0)
            self.epochs[rows] += seen
        if self.suggestions is not None:
            self.suggestions.end_epoch()
        self.drop_epoch()

    def drop_epoch(self) -> None:
        """Start a new epoch without counting the open one."""
        self.ended_losses += self.open.losses().long()
        self.open.clear()
        if self.suggestions is not None:
            self.suggestions.drop_epoch()
        self._is_copy = False

    def scores(self, name: str, *, has_epochs: bool) -> tuple[Tensor, Tensor]:
        """Values (samples,) and which samples were observed (samples,) bool; without epochs, of the open one."""
        if has_epochs:
            return self.reductions[name].values(self.epochs), self.epochs > 0
        self.open.flush()
        means, seen = self.open.means(slice(0, len(self.epochs)))
        signal = means[self.open.signals.index(SCORES[name].signal)]
        only = SCORES[name].reduction(len(signal), signal.shape[1], self.device)
        only.observe(slice(None), signal, seen, torch.zeros_like(self.epochs))
        return only.values(seen.int()), seen

    def lost(self) -> dict[str, int]:
        """Number of observations that did not count, by reason; reads from the device."""
        self.open.flush()
        counts = (self.ended_losses + self.open.losses().long()).tolist()
        return {reason: count for reason, count in zip(SPARE_ROWS, counts, strict=True) if count}

    def num_open(self) -> int:
        """Number of observations in the epoch that has not ended; reads from the device."""
        self.open.flush()
        return int(self.open.tensors["sums"][: self.open.num_samples, -1].sum())

    def follow(self, later: "State") -> None:
        """Append the epochs of a later training; the open epochs become one."""
        self.open.flush()
        later.open.flush()
        for name, reduction in self.reductions.items():
            reduction.follow(later.reductions[name], self.epochs, later.epochs)
        if self.suggestions is not None and later.suggestions is not None:
            self.suggestions.follow(later.suggestions, seen=later.open.tensors["sums"][:, -1] > 0)
        if self.probabilities is not None and later.probabilities is not None:
            self.probabilities += later.probabilities
        self.epochs += later.epochs
        self.ended_losses += later.ended_losses
        for name, tensor in self.open.tensors.items():
            tensor += later.open.tensors[name]

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor by name, up to date."""
        self.open.flush()
        yield "epochs", self.epochs
        yield "ended_losses", self.ended_losses
        if self.probabilities is not None:
            yield "probabilities", self.probabilities
        if self.open.logits_of is not None:
            yield LOGITS_OF, self.open.logits_of
        parts = {"open": self.open, "suggestions": self.suggestions, **self.reductions}
        for part, owner in parts.items():
            if owner is not None:
                yield from ((f"{part}.{name}", tensor) for name, tensor in owner.tensors.items())

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy the tensors of another state into this one.

        The samples whose full logits are recorded may differ; then logits of the open epoch are recorded from here on.
        """
        before, after = tensors.get(LOGITS_OF), self.open.logits_of
        is_same = before is not None and after is not None and torch.equal(before.cpu(), after.cpu())
        left_out = {LOGITS_OF} if is_same else {LOGITS_OF, "open.logits"}
        ours = {name: tensor for name, tensor in self.tensors() if name not in left_out}
        missing = [name for name in ours if name not in tensors]
        if missing:
            raise InputError(f"the state lacks {', '.join(missing)}; it may have been saved by another version")
        for name, tensor in ours.items():
            tensor.copy_(tensors[name])
        self._is_copy = rank() > 0
