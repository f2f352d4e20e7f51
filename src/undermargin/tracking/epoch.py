"""The open epoch: the sum of every signal for every sample. Invalid observations are set aside without a device sync.

The cost of checks and sums is the number of small operations, not their size. So small batches are buffered before
their classes are read, and their statistics, a few numbers per sample, are buffered again before signals are computed
and added. Most steps only copy their batch.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.errors import InputError
from undermargin.tracking.signals import SIGNALS, WIDE, Batch, Signal, Statistics, name_of, num_statistics
from undermargin.tracking.suggestions import Suggestions
from undermargin.tracking.trajectories import Trajectories

BUFFER = 1 << 16  # numbers buffered together: few enough for a cache, enough to hide the cost of an operation
BLOCK = 1 << 16  # samples processed together when an epoch ends
TELLING_ROWS = 8  # fewer rows may sum to one by chance

Observed = tuple[Tensor, ...]  # labels and indices (batch,), then what was observed: one row per observation

# The rows after those of the samples collect the observations that do not count, one row per reason.
SPARE_ROWS = ("negative label", "non-finite logits", "label too large", "index out of range")


class Epoch:
    """Sums of the signals over one epoch: (samples + spare rows, signals + 1); the last column counts observations."""

    def __init__(
        self,
        num_samples: int,
        signals: Sequence[Signal],
        num_outputs: int,
        device: torch.device,
        *,
        suggestions: Suggestions | None = None,
        probabilities: int | None = None,
        logits_of: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.num_samples = num_samples
        # the margin comes first, since it tells what is finite; the wide signal is last and has a tensor of its own
        names = [signal for signal in signals if isinstance(signal, str)]
        self.built_in = tuple(dict.fromkeys(("margin", *(name for name in names if name != WIDE))))
        self.own = tuple(dict.fromkeys(signal for signal in signals if not isinstance(signal, str)))  # of plug-ins
        self.narrow: tuple[Signal, ...] = (*self.built_in, *self.own)
        self.signals = (*self.narrow, WIDE) if WIDE in names else self.narrow
        self.num_statistics = num_statistics(("margin", *names))
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
        self._statistics: list[Observed] = []  # with statistics and plug-in signals

    def update(self, logits: Tensor, labels: Tensor, indices: Tensor) -> None:
        """Observe a batch: logits (batch, outputs), labels (batch,), indices (batch,)."""
        # copies, since the caller may overwrite its tensors in the next step
        labels, indices = labels.clone(), indices.clone()
        if logits.numel() >= BUFFER:
            self._measure_batches()
            self._measure(labels, indices, logits)
        else:
            self._batches.append((labels, indices, logits.clone()))
            if len(self._batches) * logits.numel() >= BUFFER:
                self._measure_batches()

    def flush(self) -> None:
        """Add everything that is buffered to the sums."""
        self._measure_batches()
        self._add_signals()

    def _measure_batches(self) -> None:
        if self._batches:
            self._measure(*_joined(self._batches))

    def _measure(self, labels: Tensor, indices: Tensor, logits: Tensor) -> None:
        """Read all classes of a batch and buffer its statistics."""
        batch = Batch(logits, labels.unsqueeze(1).clamp(0, self.num_outputs - 1))
        if self.looks_like_probabilities is None and len(logits) >= TELLING_ROWS:
            self.looks_like_probabilities = _sum_to_one(batch.logits)
        parts = (*batch.statistics(self.num_statistics).parts, *(_computed(signal, batch) for signal in self.own))
        # in the sums' own type: what does not fit into it is not finite there
        parts = tuple(part.to(self.tensors["sums"].dtype) for part in parts)
        if self.suggestions is not None or len(self.tensors) > 1:
            self._add_wide(batch, self._statistics_of(parts), self._rows(parts, labels, indices))
        self._statistics.append((labels, indices, *parts))
        if len(self._statistics) * len(parts) * len(labels) >= BUFFER:
            self._add_signals()

    def _statistics_of(self, parts: Observed) -> Statistics:
        return Statistics(self.num_outputs, *parts[: self.num_statistics])

    def _add_wide(self, batch: Batch, statistics: Statistics, rows: Tensor) -> None:
        """Add what would be too large to buffer."""
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
            labels, indices, *rest = _joined(self._statistics)
            parts = tuple(rest)
            statistics = self._statistics_of(parts)
            signals = (*(SIGNALS[name](statistics) for name in self.built_in), *parts[self.num_statistics :])
            added = torch.cat((*signals, torch.ones_like(statistics.margin)), 1)
            _add_rows(self.tensors["sums"], self._rows(parts, labels, indices), added)

    def _rows(self, parts: Observed, labels: Tensor, indices: Tensor) -> Tensor:
        """The row of each observation: its sample's, or the spare row of the reason why it does not count."""
        excess = labels - labels.clamp(0, self.num_outputs - 1)
        inside = indices == indices.clamp(0, self.num_samples - 1)
        rows = torch.where(inside, indices, len(self.tensors["sums"]) - 1)
        # zero times a finite number is zero; where the margin is finite, every built-in signal is
        zero = parts[0][:, 0] * 0
        for signal in parts[self.num_statistics :]:
            zero = zero + signal[:, 0] * 0
        return torch.where(zero == excess, rows, excess.sign() + (self.num_samples + 1))

    def blocks(self) -> list[slice]:
        """The rows of the samples, in slices small enough for a cache."""
        starts = range(0, self.num_samples, BLOCK)
        return [slice(start, min(start + BLOCK, self.num_samples)) for start in starts]

    def means(self, rows: slice) -> tuple[list[Tensor], Tensor]:
        """Mean of every signal, (rows, width) each, and which samples were observed, (rows,) bool; others are nan."""
        sums = self.tensors["sums"][rows]
        count = sums[:, -1:]
        means = list(torch.split(sums[:, :-1] / count, 1, 1))
        if WIDE in self.tensors:
            means.append(self.tensors[WIDE][rows] / count)
        return means, count[:, 0] > 0

    def probabilities(self, rows: slice) -> Tensor:
        """Mean probability of each class, nan where not observed: (rows, classes)."""
        return self.tensors["probabilities"][rows] / self.tensors["sums"][rows, -1:]

    def losses(self) -> Tensor:
        """Number of observations in each spare row: (spare rows,)."""
        return self.tensors["sums"][self.num_samples :, -1]

    def shared(self) -> Iterator[Tensor]:
        """Views of what the ranks of a job must add up. Of the spare rows, only the counts in `sums` are ever read."""
        for name, tensor in self.tensors.items():
            yield tensor if name == "sums" else tensor[:-1] if name == "logits" else tensor[: self.num_samples]

    def logits(self) -> Tensor:
        """Mean logits of the chosen samples, nan where not observed: (chosen, outputs)."""
        sums = self.tensors["logits"][:-1]
        return sums[:, :-1] / sums[:, -1:]

    def record(self, trajectories: Trajectories, number: int) -> None:
        """Write the means of this epoch block by block, and the logits of the chosen samples."""

        def blocks() -> Iterator[tuple[slice, npt.NDArray[np.float32]]]:
            for rows in self.blocks():
                sums = self.tensors["sums"][rows]
                yield rows, (sums[:, :-1] / sums[:, -1:]).cpu().numpy()

        trajectories.describe([name_of(signal) for signal in self.narrow], self.num_samples)
        trajectories.write(number, (self.num_samples, len(self.narrow)), blocks())
        if len(trajectories.logits_of):
            trajectories.write_logits(number, self.logits().cpu().numpy())

    def clear(self) -> None:
        """Set all sums to zero."""
        for tensor in self.tensors.values():
            tensor.zero_()


def _joined(waiting: list[Observed]) -> Observed:
    """Everything that is buffered, as one batch; empties the buffer."""
    joined = waiting[0] if len(waiting) == 1 else tuple(torch.cat(parts) for parts in zip(*waiting, strict=True))
    waiting.clear()
    return joined


def _computed(signal: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
    """The signal of a plug-in, after checking its shape: (batch, 1)."""
    values = signal(batch)
    if values.shape != batch.labels.shape:
        raise InputError(
            f"the signal {name_of(signal)} returned shape {tuple(values.shape)}, expected "
            f"{tuple(batch.labels.shape)}: one number per row of logits"
        )
    return values.detach()


def _add_rows(sums: Tensor, rows: Tensor, values: Tensor) -> None:
    """sums[rows] += values; rows may repeat."""
    if values.shape[1] == 2 and sums.device.type == "cpu":
        # As one complex number, a sum and its count are added together, with half the cache misses. A value that is
        # not finite, on its way to a spare row, would then make the count next to it nan.
        sums, values = torch.view_as_complex(sums), torch.view_as_complex(values.nan_to_num(0, 0, 0))
    sums.index_add_(0, rows, values)


def _sum_to_one(logits: Tensor) -> Tensor:
    """Whether these are probabilities rather than logits: a bool on the device, read with the scores."""
    if logits.shape[1] == 2:  # as_logits turned a single output into (0, output)
        outputs = logits[:, 1]
        is_sigmoid = (logits[:, 0] == 0).all() & (outputs > 0).all() & (outputs < 1).all()
    else:
        is_sigmoid = torch.zeros((), dtype=torch.bool, device=logits.device)
    sums = (logits.sum(1) - 1).abs() < 1e-2  # the precision of half precision
    is_between = (logits > 0) & (logits < 1)  # rows of only zeros and ones are an example, not a softmax
    return ((logits >= 0).all() & sums.all() & is_between.any()) | is_sigmoid
