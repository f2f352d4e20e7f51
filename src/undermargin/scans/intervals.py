"""Intervals of shares."""

import math

NORMAL_95 = 1.959964  # two-sided 95 %


def wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % interval of a share seen in `size` samples (Wilson 1927).

    >>> [round(end, 3) for end in wilson(1 / 10, 10)]
    [0.018, 0.404]
    """
    square = NORMAL_95**2
    middle = share + square / (2 * size)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / size + square / (4 * size**2))
    scale = 1 + square / size
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
