"""The table of scores. A score is a signal and a reduction: what is measured, and how it is summarized over epochs.

Low means suspicious for every score but variability, which has no suspicious direction of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from undermargin.errors import InputError
from undermargin.plugins import Table
from undermargin.tracking.reductions import Deviation, Forgetting, Last, Margin, Mean, Reduction, Trend, Wrong
from undermargin.tracking.signals import SIGNALS, WIDE, Signal


@dataclass(frozen=True)
class Score:
    """One row of SCORES.

    `signal` is the name of a built-in signal, or a function of a `Batch` that returns one number per row: (batch, 1).
    `reduction` is called with (num_samples, width of the signal, device).
    """

    signal: Signal
    reduction: Callable[[int, int, torch.device], Reduction]
    description: str
    paper: str
    sign: int = 1  # -1 where the signal itself is high for suspicious samples
    is_directed: bool = True  # False: neither end is suspicious, so samples cannot be judged by it alone
    needs_epochs: bool = True  # False: also defined without end_epoch(), as if all observations were one epoch

    def __post_init__(self) -> None:
        if not callable(self.signal) and self.signal not in (*SIGNALS, WIDE):
            raise InputError(
                f"there is no signal {self.signal!r}; choose from {', '.join((*SIGNALS, WIDE))}, or pass a function of "
                "a Batch that returns one number per row"
            )


SCORES: Mapping[str, Score] = Table(
    "undermargin.scores",
    Score,
    {
        "aum": Score(
            "margin", Mean, "mean margin: the area under the margin", "Pleiss et al. 2020", needs_epochs=False
        ),
        "last_margin": Score("margin", Last, "margin in the last epoch", "Pleiss et al. 2020"),
        "last_loss": Score("loss", Last, "minus the loss in the last epoch", "Arazo et al. 2019", sign=-1),
        "mean_loss": Score("loss", Mean, "minus the mean loss", "Gui et al. 2021", sign=-1, needs_epochs=False),
        "probability_margin": Score(
            "probability_margin", Mean, "mean margin between probabilities", "Jia et al. 2023", needs_epochs=False
        ),
        "averaged_margin": Score(
            WIDE, Margin, "margin of the averaged probabilities", "Northcutt et al. 2021", needs_epochs=False
        ),
        "confidence": Score(
            "confidence", Mean, "mean probability of the label", "Swayamdipta et al. 2020", needs_epochs=False
        ),
        "confidence_trend": Score(
            "confidence",
            Trend,
            "t statistic of the trend of the label's probability; negative if it falls",
            "after Pan et al. 2025",
        ),
        "variability": Score(
            "confidence",
            Deviation,
            "deviation of the label's probability; neither end is suspicious by itself",
            "Swayamdipta et al. 2020",
            is_directed=False,
        ),
        "signed_entropy": Score(
            "signed_entropy",
            Mean,
            "mean of log(classes) minus entropy; negative where the label is not the most likely class",
            "after Li et al. 2026",
            needs_epochs=False,
        ),
        "correctness": Score(
            "correct", Mean, "share of epochs predicted correctly", "Swayamdipta et al. 2020", needs_epochs=False
        ),
        "el2n": Score(
            "el2n", Mean, "minus the mean length of the error vector", "Paul et al. 2021", sign=-1, needs_epochs=False
        ),
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
    """The names as a tuple; an error if one is not in the table or there is none."""
    names = (scores,) if isinstance(scores, str) else tuple(scores)
    for name in names:
        if name not in SCORES:
            raise InputError(f"there is no score {name!r}; choose from {', '.join(SCORES)}")
    if not names:
        raise InputError("scores is empty; name at least one, such as 'aum'")
    return names
