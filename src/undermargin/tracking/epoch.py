"""The open epoch: sums of every signal for every sample, with guards, and never a wait for the device.

What guards and sums cost is the number of small operations, not their size. So small batches wait in a buffer until
they are worth a look at all classes, and what is left of them, a few numbers a sample, waits until it is worth the
signals and their sums; most steps only copy their batch.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.tracking.signals import OF_MARGIN, SIGNALS, WIDE, Batch, Statistics
from undermargin.tracking.suggestions import Suggestions
from undermargin.tracking.trajectories import Trajectories

BUFFER = 1 << 16  # numbers that wait together: few enough for a cache, enough to hide the cost of an operation
BLOCK = 1 << 16  # samples handled together when an epoch ends
TELLING_ROWS = 8  # fewer may sum to one by chance

Observed = tuple[Tensor, ...]  # labels and indices (batch,), and what was observed, a row a sample

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
        probabilities: int | None = None,
        logits_of: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.num_samples = num_samples
        # the margin comes first: it tells what is finite; the wide signal last, for it has a tensor of its own
        self.narrow = tuple(dict.fromkeys(("margin", *(name for name in signals if name != WIDE))))
        self.signals = (*self.narrow, WIDE) if WIDE in signals else self.narrow
        self.with_softmax = not OF_MARGIN.issuperset(self.signals)
        self.num_outputs = num_outputs
        self.suggestions = suggestions
        rows = num_samples + len(SPARE_ROWS)
        self.tensors = {"sums": torch.zeros(rows, len(self.narrow) + 1, dtype=dtype, device=device)}
        if WIDE in self.signals:
            self.tensors[WIDE] = torch.zeros(rows, num_outputs, dtype=dtype, device=device)
        self.num_classes = probabilities
        if probabilities:
            self.tensors["probabilities"] = torch.zeros(rows, probabilities, dtype=dtype, device=device)
        self.logits_of = logits_of
        if logits_of is not None:
            self.tensors["logits"] = torch.zeros(len(logits_of) + 1, num_outputs + 1, dtype=dtype, device=device)
            self.slots = torch.full((rows,), len(logits_of), dtype=torch.int32, device=device)
            self.slots[logits_of.to(device)] = torch.arange(len(logits_of), dtype=torch.int32, device=device)
        self.looks_like_probabilities: Tensor | None = None
        self._batches: list[Observed] = []  # with logits
        self._statistics: list[Observed] = []  # with statistics

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Take a batch: logits (batch, outputs), labels (batch,), indices (batch,)."""
        # copies: what the caller passed may be a buffer of its own that the next step overwrites
        labels, indices = labels.clone(), indices.clone()
        if logits.numel() >= BUFFER:
            self._measure_batches()
            self._measure(labels, indices, logits)
        else:
            self._batches.append((labels, indices, logits.clone()))
            if len(self._batches) * logits.numel() >= BUFFER:
                self._measure_batches()

    def flush(self) -> None:
        """Bring the sums up to date with everything that waits."""
        self._measure_batches()
        self._add_signals()

    def _measure_batches(self) -> None:
        if self._batches:
            self._measure(*_joined(self._batches))

    def _measure(self, labels: Tensor, indices: Tensor, logits: Tensor) -> None:
        """Look at all classes of a batch, and leave its statistics to be added."""
        batch = Batch(logits, labels.unsqueeze(1).clamp(0, self.num_outputs - 1))
        if self.looks_like_probabilities is None and len(logits) >= TELLING_ROWS:
            self.looks_like_probabilities = _sum_to_one(batch.logits)
        # in the sums' own type: what does not fit into it is not finite there
        parts = [part.to(self.tensors["sums"].dtype) for part in batch.statistics(with_softmax=self.with_softmax).parts]
        if self.suggestions is not None or len(self.tensors) > 1:
            self._add_wide(batch, Statistics(*parts), self._rows(parts[0], labels, indices))
        self._statistics.append((labels, indices, *parts))
        if len(self._statistics) * len(parts) * len(labels) >= BUFFER:
            self._add_signals()

    def _add_wide(self, batch: Batch, statistics: Statistics, rows: Tensor) -> None:
        """Add at once what would be too large to wait."""
        if WIDE in self.tensors:
            probabilities = batch.other_probabilities(statistics)
            self.tensors[WIDE].index_add_(0, rows, probabilities.to(self.tensors[WIDE].dtype))
        if "probabilities" in self.tensors:
            shares = batch.logits[:, : self.num_classes].softmax(1)
            self.tensors["probabilities"].index_add_(0, rows, shares.to(self.tensors["sums"].dtype))
        if self.suggestions is not None:
            self.suggestions.update(rows, batch.others, batch.assigned)
        if "logits" in self.tensors:
            values = torch.cat((batch.logits, torch.ones_like(batch.margin)), 1).to(self.tensors["sums"].dtype)
            self.tensors["logits"].index_add_(0, self.slots[rows], values)

    def _add_signals(self) -> None:
        if self._statistics:
            labels, indices, *parts = _joined(self._statistics)
            statistics = Statistics(*parts)
            rows = self._rows(statistics.margin, labels, indices)
            signals = [SIGNALS[signal](statistics) for signal in self.narrow]
            added = torch.cat((*signals, torch.ones_like(statistics.margin)), 1)
            _add_rows(self.tensors["sums"], rows, added)

    def _rows(self, margin: Tensor, labels: Tensor, indices: Tensor) -> Tensor:
        """Where each observation goes: its sample's row, or the spare row that says what is wrong with it."""
        excess = labels - labels.clamp(0, self.num_outputs - 1)
        inside = indices == indices.clamp(0, self.num_samples - 1)
        rows = torch.where(inside, indices, len(self.tensors["sums"]) - 1)
        # zero times a finite number is zero; where the margin is finite, so is every signal
        is_good = margin[:, 0] * 0 == excess
        return torch.where(is_good, rows, excess.sign() + (self.num_samples + 1))

    def blocks(self) -> list[slice]:
        """The samples' rows, in pieces small enough to stay in a cache."""
        starts = range(0, self.num_samples, BLOCK)
        return [slice(start, min(start + BLOCK, self.num_samples)) for start in starts]

    def means(self, rows: slice) -> tuple[list[Tensor], Tensor]:
        """Mean of every signal, (rows, width) each, and who was seen: (rows,) bool. Unseen samples are nan."""
        sums = self.tensors["sums"][rows]
        count = sums[:, -1:]
        means = list(torch.split(sums[:, :-1] / count, 1, 1))
        if WIDE in self.tensors:
            means.append(self.tensors[WIDE][rows] / count)
        return means, count[:, 0] > 0

    def probabilities(self, rows: slice) -> Tensor:
        """Mean probability of each class, nan where not seen: (rows, classes)."""
        return self.tensors["probabilities"][rows] / self.tensors["sums"][rows, -1:]

    def losses(self) -> Tensor:
        """How many observations went to each spare row: (spare rows,)."""
        return self.tensors["sums"][self.num_samples :, -1]

    def logits(self) -> Tensor:
        """Mean logits of the chosen samples, nan where not seen: (chosen, outputs)."""
        sums = self.tensors["logits"][:-1]
        return sums[:, :-1] / sums[:, -1:]

    def record(self, trajectories: Trajectories, number: int) -> None:
        """Write this epoch's means block by block, and the chosen samples' logits."""

        def blocks() -> Iterator[tuple[slice, npt.NDArray[np.float32]]]:
            for rows in self.blocks():
                sums = self.tensors["sums"][rows]
                yield rows, (sums[:, :-1] / sums[:, -1:]).cpu().numpy()

        trajectories.describe(self.narrow, self.num_samples)
        trajectories.write(number, (self.num_samples, len(self.narrow)), blocks())
        if len(trajectories.logits_of):
            trajectories.write_logits(number, self.logits().cpu().numpy())

    def clear(self) -> None:
        """Start anew."""
        for tensor in self.tensors.values():
            tensor.zero_()


def _joined(waiting: list[Observed]) -> Observed:
    """Everything that waits, as one batch; nothing waits any more."""
    joined = waiting[0] if len(waiting) == 1 else tuple(torch.cat(parts) for parts in zip(*waiting, strict=True))
    waiting.clear()
    return joined


def _add_rows(sums: Tensor, rows: Tensor, values: Tensor) -> None:
    """sums[rows] += values, repeated rows adding up."""
    if values.shape[1] == 2 and sums.device.type == "cpu":
        # As one complex number each, a sum and its count lie in one place: half the cache misses. But then what is
        # not finite, on its way to a spare row, would spoil the count beside it.
        sums, values = torch.view_as_complex(sums), torch.view_as_complex(values.nan_to_num(0, 0, 0))
    sums.index_add_(0, rows, values)


def _sum_to_one(logits: Tensor) -> Tensor:
    """Whether these are probabilities rather than logits: a bool on the device, read when scores are."""
    if logits.shape[1] == 2:  # of a model with one output we made (0, output) ourselves
        outputs = logits[:, 1]
        is_sigmoid = (logits[:, 0] == 0).all() & (outputs > 0).all() & (outputs < 1).all()
    else:
        is_sigmoid = torch.zeros((), dtype=torch.bool, device=logits.device)
    sums = (logits.sum(1) - 1).abs() < 1e-2  # half precision is no better than that
    is_between = (logits > 0) & (logits < 1)  # rows of zeros and ones alone are somebody's toy, not a softmax
    return ((logits >= 0).all() & sums.all() & is_between.any()) | is_sigmoid
