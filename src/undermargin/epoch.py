"""The open epoch: sums of every signal for every sample, with guards, and never a wait for the device.

Small batches are kept in a buffer and added together, so that the many small operations of the guards are
paid once for thousands of logits and not at every step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from undermargin.signals import SIGNALS, Batch, width
from undermargin.suggestions import Suggestions

BUFFER = 1 << 16  # logits: small enough for a cache, large enough to hide the cost of an operation
BLOCK = 1 << 16  # samples handled together when an epoch ends

# Behind the samples' rows stand spare rows that take what must not count. Their counts are the report.
SPARE_ROWS = ("negative label", "non-finite logits", "label too large", "index out of range")


class Epoch:
    """Sums of the signals over one epoch: (samples + spare rows, signals + 1), the last column counts."""

    def __init__(
        self,
        num_samples: int,
        signals: Sequence[str],
        num_outputs: int,
        device: torch.device,
        *,
        suggestions: Suggestions | None = None,
        logits_of: Tensor | None = None,
    ) -> None:
        self.num_samples = num_samples
        self.signals = tuple(signals)
        self.num_outputs = num_outputs
        self.suggestions = suggestions
        self.widths = [width(signal, num_outputs) for signal in self.signals]
        rows = num_samples + len(SPARE_ROWS)
        self.tensors = {"sums": torch.zeros(rows, sum(self.widths) + 1, device=device)}
        if logits_of is not None:
            self.tensors["logits"] = torch.zeros(len(logits_of) + 1, num_outputs + 1, device=device)
            self.slots = torch.full((rows,), len(logits_of), dtype=torch.int32, device=device)
            self.slots[logits_of.to(device)] = torch.arange(len(logits_of), dtype=torch.int32, device=device)
        self.looks_like_probabilities: Tensor | None = None
        self._buffer: list[tuple[Tensor, Tensor, Tensor]] = []
        self._buffered = 0

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Take a batch: logits (batch, outputs), labels (batch,), indices (batch,)."""
        if logits.numel() >= BUFFER:
            self.flush()
            self._add(logits, labels, indices)
            return
        # copies: what the caller passed may be a buffer of its own that the next step overwrites
        self._buffer.append((logits.clone(), labels.clone(), indices.clone()))
        self._buffered += logits.numel()
        if self._buffered >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Bring the sums up to date with the buffer."""
        if self._buffer:
            self._add(*(torch.cat(parts) for parts in zip(*self._buffer, strict=True)))
            self._buffer.clear()
            self._buffered = 0

    def _add(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        column = labels.unsqueeze(1)
        batch = Batch(logits, column.clamp(0, self.num_outputs - 1))
        if self.looks_like_probabilities is None:
            self.looks_like_probabilities = _sum_to_one(batch.logits)
        rows = self._rows(batch, column, indices)
        ones = torch.ones_like(batch.margin)
        values = torch.cat([*(SIGNALS[signal](batch) for signal in self.signals), ones], 1).float()
        # what is not finite goes to a spare row, where it must not spoil the count beside it
        _add_rows(self.tensors["sums"], rows, values.nan_to_num_(0, 0, 0))
        if self.suggestions is not None:
            self.suggestions.update(rows, batch.others, batch.margin)
        if "logits" in self.tensors:
            self.tensors["logits"].index_add_(0, self.slots[rows], torch.cat((batch.logits, ones), 1).float())

    def _rows(self, batch: Batch, column: Tensor, indices: Tensor) -> Tensor:
        """Where each observation goes: its sample's row, or the spare row that says what is wrong with it."""
        # zero times the margin is zero, unless the margin is not finite: then nothing equals the sum
        is_good = torch.add(column, batch.margin, alpha=0) == batch.labels
        spare = (column - batch.labels).sign() + (self.num_samples + 1)
        last_row = len(self.tensors["sums"]) - 1
        inside = indices == indices.clamp(0, self.num_samples - 1)
        rows = torch.where(inside, indices, last_row)
        return torch.where(is_good[:, 0], rows, spare[:, 0])

    def blocks(self) -> list[slice]:
        """The samples' rows, in pieces small enough to stay in a cache."""
        starts = range(0, self.num_samples, BLOCK)
        return [slice(start, min(start + BLOCK, self.num_samples)) for start in starts]

    def means(self, rows: slice) -> tuple[list[Tensor], Tensor]:
        """Mean of every signal, (rows, width) each, and who was seen: (rows,) bool. Unseen samples are nan."""
        sums = self.tensors["sums"][rows]
        count = sums[:, -1:]
        return list((sums[:, :-1] / count).split(self.widths, 1)), count[:, 0] > 0

    def losses(self) -> Tensor:
        """How many observations went to each spare row: (spare rows,)."""
        return self.tensors["sums"][self.num_samples :, -1]

    def logits(self) -> Tensor:
        """Mean logits of the chosen samples, nan where not seen: (chosen, outputs)."""
        sums = self.tensors["logits"][:-1]
        return sums[:, :-1] / sums[:, -1:]

    def clear(self) -> None:
        """Start anew."""
        for tensor in self.tensors.values():
            tensor.zero_()


def _add_rows(sums: Tensor, rows: Tensor, values: Tensor) -> None:
    """sums[rows] += values, repeated rows adding up."""
    if values.shape[1] == 2 and sums.device.type == "cpu":
        # as one complex number each, a sum and its count lie in one place: half the cache misses
        sums, values = torch.view_as_complex(sums), torch.view_as_complex(values)
    sums.index_add_(0, rows, values)


def _sum_to_one(logits: Tensor) -> Tensor:
    """Whether these are probabilities rather than logits: a bool on the device, read when scores are."""
    sums = (logits.sum(1) - 1).abs() < 1e-3
    is_between = (logits > 0) & (logits < 1)  # rows of zeros and ones alone are somebody's toy, not a softmax
    return (logits >= 0).all() & sums.all() & is_between.any()
