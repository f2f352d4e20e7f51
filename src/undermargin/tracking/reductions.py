"""Reductions: how a signal is summarized over the epochs.

A tracker passes each reduction the mean signal of an epoch, so a sample shown twice in an epoch counts once. A
reduction is three small methods over its own tensors, one row per sample: `observe` takes an epoch, `follow` appends
the epochs of a later training, `values` returns the scores.
"""

# ruff: noqa: ARG002, D102 - all reductions have the signatures and meanings of the protocol

from typing import Protocol

import torch
from torch import Tensor


class Reduction(Protocol):
    """Summary of a signal over the epochs; the state is `tensors`, one row per sample."""

    tensors: dict[str, Tensor]

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        """Take one epoch of `rows`: means (rows, width), seen (rows,) bool, epochs seen before (rows,)."""

    def follow(self, later: "Reduction", epochs: Tensor, later_epochs: Tensor) -> None:
        """Append the epochs that `later` observed; `epochs` and `later_epochs` (samples,) count those of each."""

    def values(self, epochs: Tensor) -> Tensor:
        """Scores (samples,) after `epochs` (samples,) observed epochs; rows with 0 epochs are undefined."""


class Mean:
    """The mean over epochs; for a signal with several numbers per sample, a subclass defines `values`."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {"total": torch.zeros(num_samples, width, dtype=torch.float32, device=device)}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        self.tensors["total"][rows] += means.where(seen[:, None], 0)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        self.tensors["total"] += later.tensors["total"]

    def values(self, epochs: Tensor) -> Tensor:
        return self.tensors["total"][:, 0] / epochs


class Margin(Mean):
    """The margin of the averaged probabilities: the label's, which is 1 minus all others, minus the largest other."""

    def values(self, epochs: Tensor) -> Tensor:
        others = self.tensors["total"]
        return 1 - (others.sum(1) + others.amax(1)) / epochs


class Last:
    """The signal in the last epoch in which the sample was observed."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {"last": torch.zeros(num_samples, width, dtype=torch.float32, device=device)}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        last = self.tensors["last"][rows]
        last.copy_(means.where(seen[:, None], last))

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        last = self.tensors["last"]
        last.copy_(later.tensors["last"].where(later_epochs[:, None] > 0, last))

    def values(self, epochs: Tensor) -> Tensor:
        return self.tensors["last"][:, 0]


class Deviation:
    """Population standard deviation over epochs, by Welford's update (a sum of squares would cancel)."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {
            name: torch.zeros(num_samples, width, dtype=torch.float32, device=device) for name in ("mean", "squares")
        }

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        mean, squares = self.tensors["mean"][rows], self.tensors["squares"][rows]
        before = (means - mean).where(seen[:, None], 0)
        mean += before / (epochs[:, None] + 1)
        squares += before * (means - mean).where(seen[:, None], 0)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        ours, theirs = epochs[:, None], later_epochs[:, None]
        share = theirs / (ours + theirs).clamp(min=1)
        gap = later.tensors["mean"] - self.tensors["mean"]
        self.tensors["mean"] += gap * share
        self.tensors["squares"] += later.tensors["squares"] + gap.square() * ours * share

    def values(self, epochs: Tensor) -> Tensor:
        return (self.tensors["squares"][:, 0] / epochs).sqrt()


class Trend:
    """t statistic of the slope of a least-squares line through the epochs: negative if the signal falls.

    Each sample's epochs are numbered 0, 1, ... as it was observed. The residual deviation is never taken as smaller
    than `NOISE`, so that a straight line has a finite statistic and a tiny drift counts as none (Tusher et al. 2001
    add a constant for the same reason). Fewer than three epochs have no residuals: 0.
    """

    NOISE = 0.01

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        names = ("mean", "slope", "residuals")  # residuals: sum of squared distances from the line
        self.tensors = {name: torch.zeros(num_samples, dtype=torch.float32, device=device) for name in names}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        ours = {name: tensor[rows] for name, tensor in self.tensors.items()}
        nothing = torch.zeros_like(ours["slope"])
        point = {"mean": means[:, 0].where(seen, 0), "slope": nothing, "residuals": nothing}
        _append_line(ours, epochs, point, seen)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        _append_line(self.tensors, epochs, later.tensors, later_epochs)

    def values(self, epochs: Tensor) -> Tensor:
        variance = self.tensors["residuals"] / (epochs - 2).clamp(min=1) + self.NOISE**2
        return (self.tensors["slope"] * (_spread(epochs.float()) / variance).sqrt()).where(epochs > 2, 0)


def _append_line(ours: dict[str, Tensor], epochs: Tensor, theirs: dict[str, Tensor], later_epochs: Tensor) -> None:
    """Fit one line to the epochs of `ours` and those of `theirs` after them, in place of `ours`.

    The common slope is the mean of three slopes: within ours, within theirs, and from our mean to theirs, each
    weighted by the squared distances in time that it spans. Residuals grow by the weighted squares of their
    differences from it, which never cancels.
    """
    before, after = epochs.float(), later_epochs.float()
    gap = theirs["mean"] - ours["mean"]
    length = (before + after).clamp(min=1)
    slopes = torch.stack((ours["slope"], theirs["slope"], 2 * gap / length))
    weights = torch.stack((_spread(before), _spread(after), before * after * length / 4))
    slope = (weights * slopes).sum(0) / weights.sum(0).clamp(min=0.25)  # at least 1/2 where there are two epochs
    ours["residuals"] += theirs["residuals"] + (weights * (slopes - slope).square()).sum(0)
    ours["slope"].copy_(slope)
    ours["mean"] += gap * after / length


def _spread(epochs: Tensor) -> Tensor:
    """Sum of squared distances of 0, 1, ..., epochs - 1 from their mean."""
    return epochs * (epochs.square() - 1).clamp(min=0) / 12


class Forgetting:
    """Minus the number of times a correct prediction became wrong in the next epoch.

    A sample that was never predicted correctly was never learned, which is more suspicious than being forgotten every
    time: it gets minus the number of epochs (the ranking of Toneva et al.).
    """

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {
            "events": torch.zeros(num_samples, dtype=torch.int32, device=device),
            **{
                name: torch.zeros(num_samples, dtype=torch.bool, device=device) for name in ("first", "last", "learned")
            },
        }

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        correct = means[:, 0] > 0.5
        events, first, last, learned = (self.tensors[name][rows] for name in ("events", "first", "last", "learned"))
        events += seen & last & ~correct  # last is False before the first epoch
        first |= seen & correct & (epochs == 0)
        learned |= seen & correct
        last.copy_(correct.where(seen, last))

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        ours, theirs = self.tensors, later.tensors
        seen = later_epochs > 0
        ours["events"] += theirs["events"] + (seen & ours["last"] & ~theirs["first"]).int()
        ours["first"] |= theirs["first"] & (epochs == 0)
        ours["learned"] |= theirs["learned"]
        ours["last"].copy_(theirs["last"].where(seen, ours["last"]))

    def values(self, epochs: Tensor) -> Tensor:
        return -self.tensors["events"].float().where(self.tensors["learned"], epochs.float())


class Wrong:
    """Minus the number of epochs in which the prediction was wrong."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {"events": torch.zeros(num_samples, dtype=torch.int32, device=device)}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        self.tensors["events"][rows] += seen & (means[:, 0] <= 0.5)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        self.tensors["events"] += later.tensors["events"]

    def values(self, epochs: Tensor) -> Tensor:
        return -self.tensors["events"].float()
