"""The table of scores: a signal, and what is made of it over the epochs.

Low means suspicious for every score but variability, which has no suspicious direction of its own. A
tracker hands each reduction the epoch's mean signal, so a sample shown twice in an epoch counts once.

Every reduction is three small methods over its own tensors, one row a sample: `observe` takes an epoch,
`follow` appends a later training's epochs, `values` gives the scores.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from undermargin.errors import InputError
from undermargin.plugins import Table
from undermargin.tracking.signals import SIGNALS, WIDE


class Reduction(Protocol):
    """What a signal becomes over the epochs; the state is `tensors`, one row a sample."""

    tensors: dict[str, Tensor]

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        """Take one epoch of `rows`: means (rows, width), seen (rows,) bool, epochs seen before (rows,)."""

    def follow(self, later: "Reduction", epochs: Tensor, later_epochs: Tensor) -> None:
        """Append the epochs that `later` observed; both counts (samples,) are those before the joining."""

    def values(self, epochs: Tensor) -> Tensor:
        """(samples,) after `epochs` (samples,) observed ones; only rows with epochs > 0 mean anything."""


class Mean:
    """The mean over epochs; of a signal wider than one, `values` is left to a subclass."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {"total": torch.zeros(num_samples, width, dtype=torch.float32, device=device)}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        self.tensors["total"][rows] += means.where(seen[:, None], 0)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        self.tensors["total"] += later.tensors["total"]

    def values(self, epochs: Tensor) -> Tensor:
        return self.tensors["total"][:, 0] / epochs


class Margin(Mean):
    """The margin of the averaged probabilities: the label's, which is what others leave, minus the largest other."""

    def values(self, epochs: Tensor) -> Tensor:
        others = self.tensors["total"]
        return 1 - (others.sum(1) + others.amax(1)) / epochs


class Last:
    """The signal in the last epoch that showed the sample."""

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


class Forgetting:
    """Minus the times a correct prediction turned wrong from one epoch to the next.

    A sample that was never predicted correctly was never learned, which is worse than being forgotten
    each time: it gets minus the number of epochs (as Toneva et al. rank it).
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
    """Minus the number of epochs whose prediction was wrong."""

    def __init__(self, num_samples: int, width: int, device: torch.device) -> None:
        self.tensors = {"events": torch.zeros(num_samples, dtype=torch.int32, device=device)}

    def observe(self, rows: slice, means: Tensor, seen: Tensor, epochs: Tensor) -> None:
        self.tensors["events"][rows] += seen & (means[:, 0] <= 0.5)

    def follow(self, later: Reduction, epochs: Tensor, later_epochs: Tensor) -> None:
        self.tensors["events"] += later.tensors["events"]

    def values(self, epochs: Tensor) -> Tensor:
        return -self.tensors["events"].float()


@dataclass(frozen=True)
class Score:
    """One row of SCORES."""

    signal: str
    reduction: Callable[[int, int, torch.device], Reduction]
    description: str
    paper: str
    sign: int = 1  # -1 where the signal itself is high for suspicious samples: turned once, here
    is_directed: bool = True  # False: neither end is suspicious, so it cannot be judged alone

    def __post_init__(self) -> None:
        if self.signal not in (*SIGNALS, WIDE):
            raise InputError(f"there is no signal {self.signal!r}; choose from {', '.join((*SIGNALS, WIDE))}")

    @property
    def needs_epochs(self) -> bool:
        """Whether it compares epochs, so that `end_epoch()` must be called."""
        made = getattr(self.reduction, "func", self.reduction)  # of a partial, what it fills in
        return not (isinstance(made, type) and issubclass(made, Mean))


SCORES: Mapping[str, Score] = Table(
    "undermargin.scores",
    Score,
    {
        "aum": Score("margin", Mean, "mean margin: the area under the margin", "Pleiss et al. 2020"),
        "last_margin": Score("margin", Last, "margin in the last epoch", "Pleiss et al. 2020"),
        "last_loss": Score("loss", Last, "minus the loss in the last epoch", "Arazo et al. 2019", sign=-1),
        "mean_loss": Score("loss", Mean, "minus the mean loss", "Gui et al. 2021", sign=-1),
        "probability_margin": Score("probability_margin", Mean, "mean margin between probabilities", "Jia et al. 2023"),
        "averaged_margin": Score(
            "other_probabilities", Margin, "margin of the averaged probabilities", "Northcutt et al. 2021"
        ),
        "confidence": Score("confidence", Mean, "mean probability of the label", "Swayamdipta et al. 2020"),
        "variability": Score(
            "confidence",
            Deviation,
            "deviation of the label's probability; neither end is suspicious by itself",
            "Swayamdipta et al. 2020",
            is_directed=False,
        ),
        "correctness": Score("correct", Mean, "share of epochs predicted correctly", "Swayamdipta et al. 2020"),
        "el2n": Score("el2n", Mean, "minus the mean length of the error vector", "Paul et al. 2021", sign=-1),
        "forgetting": Score(
            "correct",
            Forgetting,
            "minus the times it was unlearned; never learned is lowest",
            "Toneva et al. 2019",
        ),
        "wrong_events": Score("correct", Wrong, "minus the epochs predicted wrongly", "Toneva et al. 2019"),
    },
)


def check_names(scores: Sequence[str]) -> tuple[str, ...]:
    """Names of rows, after making sure that there are such rows."""
    names = (scores,) if isinstance(scores, str) else tuple(scores)
    for name in names:
        if name not in SCORES:
            raise InputError(f"there is no score {name!r}; choose from {', '.join(SCORES)}")
    if not names:
        raise InputError("scores is empty; name at least one, such as 'aum'")
    return names
