"""How far a review has come, and the share of flags that were right so far."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from undermargin.scans.decisions import Decision
from undermargin.scans.intervals import wilson
from undermargin.verdicts.record import Verdicts

PAUSE = 60.0  # seconds between two decisions; longer is a break
LAST = 200  # decisions from which the pace is computed


def progress(verdicts: Verdicts, latest: Mapping[int, Decision], times: Sequence[datetime]) -> dict[str, Any]:
    """Counts of flagged samples; a flag was right if its sample was relabeled or dropped."""
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
    """The 95 % interval of the precision of all flags, if the decided samples are typical.

    The flags are a finite number: the fewer are undecided, the narrower the interval; with none left it is a point.

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
    return wilson(share, num_decided * (num_flagged - 1) / (num_flagged - num_decided))


def pace(times: Sequence[datetime]) -> float | None:
    """Decisions per minute since the last break; None for fewer than five."""
    seconds = 0.0
    count = 0
    for earlier, later in zip(reversed(times[:-1]), reversed(times[1:]), strict=True):
        gap = (later - earlier).total_seconds()
        if not 0 <= gap <= PAUSE:
            break
        seconds += gap
        count += 1
    return 60 * count / seconds if count >= 5 and seconds > 0 else None
