"""How far a review has come, and what it says about the flags: how many of them are right."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from undermargin.scans.decisions import Decision
from undermargin.verdicts.record import Verdicts

PAUSE = 60.0  # seconds; longer than this, somebody was away
LAST = 200  # decisions from which the pace is taken
Z = 1.96  # two-sided 95 %


def progress(verdicts: Verdicts, latest: Mapping[int, Decision], times: Sequence[datetime]) -> dict[str, Any]:
    """Counts over the flagged samples; a flag was right when its sample was relabeled or dropped."""
    is_flagged = verdicts.is_flagged
    actions = [decision.action for index, decision in latest.items() if is_flagged[index]]
    num_wrong = sum(action != "keep" for action in actions)
    num_flagged = int(is_flagged.sum())
    return {
        "num_flagged": num_flagged,
        "num_decided": len(actions),
        "num_wrong": num_wrong,
        "precision": num_wrong / len(actions) if actions else None,
        "interval": interval(num_wrong, len(actions), num_flagged),
        "num_others_decided": len(latest) - len(actions),
        "per_minute": pace(times),
    }


def interval(num_wrong: int, num_decided: int, num_flagged: int) -> tuple[float, float] | None:
    """Between which shares the precision of all flags lies, with 95 % (Wilson 1927), if those decided are typical.

    Flags are few, so what is decided counts for more the less is left; nothing is uncertain when all are.

    >>> [round(bound, 3) for bound in interval(61, 100, 10**9)]
    [0.512, 0.7]
    >>> interval(3, 4, 4)
    (0.75, 0.75)
    """
    if not num_decided:
        return None
    share = num_wrong / num_decided
    if num_decided >= num_flagged:
        return share, share
    size = num_decided * (num_flagged - 1) / (num_flagged - num_decided)
    middle = (share + Z**2 / (2 * size)) / (1 + Z**2 / size)
    half = Z / (1 + Z**2 / size) * math.sqrt(share * (1 - share) / size + Z**2 / (4 * size**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def pace(times: Sequence[datetime]) -> float | None:
    """Samples a minute, over the last decisions since the last pause; None before there are a few."""
    sitting = 0.0
    count = 0
    for earlier, later in zip(reversed(times[:-1]), reversed(times[1:]), strict=True):
        gap = (later - earlier).total_seconds()
        if not 0 <= gap <= PAUSE:
            break
        sitting += gap
        count += 1
    return 60 * count / sitting if count >= 5 and sitting > 0 else None
