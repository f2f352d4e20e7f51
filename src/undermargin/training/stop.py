"""Early stopping: stop when training twice as long no longer changes the ranking of the suspicious samples.

A running mean changes ever more slowly, so comparing consecutive epochs would stop any training sooner or later. Each
check therefore compares the scores with those at half the number of epochs, which is the same criterion at any length.
Only the lower half of the samples is compared: the order of the easy samples never settles and does not matter.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr
from torch import Tensor

SETTLED = 0.95  # rank correlation with the scores at half the number of epochs
FIRST_CHECK = 8  # epochs
CHECKS_AN_OCTAVE = 4  # checks per doubling: 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, ...
LOOKED_AT = 20_000  # samples compared, evenly spaced: enough for a rank correlation
PREFIX = "stop."
WAS_SETTLED = "stop.was_settled"


def is_check(epochs: int) -> bool:
    """Whether the ranking is checked after this number of epochs.

    >>> [epochs for epochs in range(40) if is_check(epochs)]
    [8, 10, 12, 14, 16, 20, 24, 28, 32]
    """
    if epochs < FIRST_CHECK:
        return False
    octave = 2 ** int(np.log2(epochs / FIRST_CHECK))
    return bool(epochs % (FIRST_CHECK // CHECKS_AN_OCTAVE * octave) == 0)


def agreement(before: npt.NDArray[np.floating], now: npt.NDArray[np.floating]) -> float:
    """Rank correlation of two score arrays (samples,), over the samples in the lower half of `now`."""
    lower = now <= np.nanmedian(now)
    return float(spearmanr(before[lower], now[lower], nan_policy="omit").statistic)


class Stop:
    """Keeps the scores of earlier epochs; `is_settled` tells when to stop."""

    def __init__(self) -> None:
        self.remembered: dict[int, npt.NDArray[np.float32]] = {}
        self.was_settled = False

    def is_settled(self, epochs: int, scores: npt.NDArray[np.floating]) -> bool:
        """Record the scores (samples,) after this number of epochs; returns whether the ranking has settled."""
        scores = scores[:: max(1, len(scores) // LOOKED_AT)].astype(np.float32)
        self.remembered = {when: before for when, before in self.remembered.items() if 2 * when >= epochs}
        before = self.remembered.get(epochs // 2)
        if is_check(2 * epochs):
            self.remembered[epochs] = scores
        if not is_check(epochs) or before is None:
            return False
        self.was_settled = agreement(before, scores) >= SETTLED
        return self.was_settled

    def tensors(self) -> dict[str, Tensor]:
        """The kept scores as named tensors, for a checkpoint."""
        remembered = {f"{PREFIX}{when}": torch.from_numpy(scores) for when, scores in self.remembered.items()}
        return remembered | {WAS_SETTLED: torch.tensor(self.was_settled)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `tensors`."""
        ours = {name: value for name, value in tensors.items() if name.startswith(PREFIX)}
        self.was_settled = bool(ours.pop(WAS_SETTLED))
        self.remembered = {int(name.removeprefix(PREFIX)): value.numpy() for name, value in ours.items()}
