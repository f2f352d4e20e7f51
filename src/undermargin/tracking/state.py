"""All that a tracker remembers: the open epoch, and every score's reduction of the ended ones."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from undermargin.errors import InputError
from undermargin.tracking.epoch import SPARE_ROWS, Epoch
from undermargin.tracking.ranks import max_over_ranks, num_ranks, rank, sum_over_ranks
from undermargin.tracking.scores import SCORES
from undermargin.tracking.signals import width
from undermargin.tracking.suggestions import Suggestions

LOGITS_OF = "logits_of"  # the tensor that says whose full logits are recorded


class State:
    """The tensors of a tracker, on the training's device; AUM alone takes 16 bytes a sample."""

    def __init__(
        self,
        num_samples: int,
        scores: Sequence[str],
        num_outputs: int,
        device: torch.device,
        *,
        suggest: int | None,
        probabilities: int | None,
        logits_of: Tensor | None,
    ) -> None:
        self.num_outputs = num_outputs
        self.device = device
        self.epochs = torch.zeros(num_samples, dtype=torch.int32, device=device)  # in which it was seen
        self.ended_losses = torch.zeros(len(SPARE_ROWS), dtype=torch.int64, device=device)
        self.reductions = {
            name: SCORES[name].reduction(num_samples, width(SCORES[name].signal, num_outputs), device)
            for name in scores
        }
        self.suggestions = Suggestions(num_samples, len(SPARE_ROWS), suggest, device) if suggest else None
        self.probabilities = torch.zeros(num_samples, probabilities, device=device) if probabilities else None
        signals = tuple(dict.fromkeys(SCORES[name].signal for name in scores))
        self.open = Epoch(
            num_samples,
            signals,
            num_outputs,
            device,
            suggestions=self.suggestions,
            probabilities=probabilities,
            logits_of=logits_of,
        )
        self.is_merged = True
        self._is_copy = False  # of sums that rank 0 holds too: dropped before going on

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Observe a checked batch."""
        self._drop_copy()
        self.open.update(logits, labels, indices)
        self.is_merged = num_ranks() == 1

    def reduce(self) -> None:
        """Sum the open epoch over the ranks. All hold the sum, rank 0 keeps it when the epoch goes on."""
        self.open.flush()
        if num_ranks() > 1:
            self._drop_copy()
            for tensor in self.open.tensors.values():
                sum_over_ranks(tensor)
            if self.suggestions is not None:
                max_over_ranks(self.suggestions.tensors["rival"])
            self._is_copy = rank() > 0
        self.is_merged = True

    def _drop_copy(self) -> None:
        if self._is_copy:
            self.open.clear()
            self._is_copy = False

    def end_epoch(self) -> None:
        """Hand the open epoch's means to the reductions and start a new one."""
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
        """Start a new epoch; the open one does not count."""
        self.ended_losses += self.open.losses().long()
        self.open.clear()
        if self.suggestions is not None:
            self.suggestions.drop_epoch()
        self._is_copy = False

    def scores(self, name: str, *, has_epochs: bool) -> tuple[Tensor, Tensor]:
        """Values (samples,) and who was observed (samples,) bool; without epochs, of the open one."""
        if has_epochs:
            return self.reductions[name].values(self.epochs), self.epochs > 0
        self.open.flush()
        means, seen = self.open.means(slice(0, len(self.epochs)))
        signal = means[self.open.signals.index(SCORES[name].signal)]
        only = SCORES[name].reduction(len(signal), signal.shape[1], self.device)
        only.observe(slice(None), signal, seen, torch.zeros_like(self.epochs))
        return only.values(seen.int()), seen

    def lost(self) -> dict[str, int]:
        """Observations that did not count, by reason; reads from the device."""
        self.open.flush()
        counts = (self.ended_losses + self.open.losses().long()).tolist()
        return {reason: count for reason, count in zip(SPARE_ROWS, counts, strict=True) if count}

    def num_open(self) -> int:
        """Observations of samples in the epoch that has not ended; reads from the device."""
        self.open.flush()
        return int(self.open.tensors["sums"][: self.open.num_samples, -1].sum())

    def follow(self, later: "State") -> None:
        """Append a later training's epochs; the open epochs become one."""
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
        """Take over another state's tensors, by copy.

        Whose logits are recorded may change from run to run: then those of the open epoch are recorded from here on.
        """
        before, after = tensors.get(LOGITS_OF), self.open.logits_of
        is_same = before is not None and after is not None and torch.equal(before.cpu(), after.cpu())
        left_out = {LOGITS_OF} if is_same else {LOGITS_OF, "open.logits"}
        ours = {name: tensor for name, tensor in self.tensors() if name not in left_out}
        missing = [name for name in ours if name not in tensors]
        if missing:
            raise InputError(f"the state lacks {', '.join(missing)}; was it saved by another version?")
        for name, tensor in ours.items():
            tensor.copy_(tensors[name])
        self._is_copy = rank() > 0
