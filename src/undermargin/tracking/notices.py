"""Warnings of a tracker."""

import sys
import warnings
from collections.abc import Mapping

from undermargin.errors import UndermarginWarning

_ROOM = __name__.rpartition(".")[0]
_ADVICE = {
    "non-finite logits": "A single overflow in half precision is harmless; many mean that training diverges",
    "label too large": "Labels must be below the number of outputs; with threshold samples the network needs one more",
    "index out of range": "Indices are positions 0..n-1 in the training set; was n smaller than the data set?",
}
_UNKNOWN_ID = "Their ids are not among those given as Tracker(n, ids=...)"


class Notices:
    """Gives each warning once, at the line of the caller's code that used the tracker."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def warn(self, message: str, *, key: str = "") -> None:
        """Warn, unless a message with the same key (default: the same message) was given before."""
        if (key or message) not in self._given:
            self._given.add(key or message)
            warnings.warn(f"Tracker: {message}", UndermarginWarning, stacklevel=_frames_to_caller())

    def lost(self, counts: Mapping[str, int], *, has_ids: bool) -> None:
        """Warn of observations that did not count, once for each reason."""
        for reason, count in counts.items():
            if reason != "negative label":  # the usual way to exclude a sample on purpose
                advice = _UNKNOWN_ID if reason == "index out of range" and has_ids else _ADVICE[reason]
                self.warn(f"{reason}: {count} observations did not count. {advice}", key=reason)

    def probabilities(self) -> None:
        """Warn that probabilities were passed as logits."""
        self.warn(
            "the logits of the first batch are probabilities: none is negative and they sum to 1. "
            "Margins of probabilities saturate; pass the output before softmax, or the logarithm of the probabilities"
        )

    def no_gradients(self) -> None:
        """Warn that a batch does not come from a training step."""
        self.warn(
            "observed a batch with gradients disabled, as in a validation loop. Only training steps should "
            "pass through update(); if this is one, ignore this warning"
        )


def _frames_to_caller() -> int:
    """The stack level, for a warning given by the function that calls this, of the first frame outside this room."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_ROOM):
        frame, level = frame.f_back, level + 1
    return level
