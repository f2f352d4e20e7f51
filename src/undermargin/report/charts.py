"""Where the marks of a chart lie: from a report's data to places on the page, in percent across and pixels down.

Widths are percentages, so a chart fills a phone as it fills a screen while its letters keep their size.
"""

import math
from collections.abc import Sequence
from typing import Any

SHADES = 9  # of the heat map, the palest is 1
GAP = 0.12  # between two bars, as a share of a bar


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from low to high, at most so many.

    >>> ticks(-3.2, 8.1)
    [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if span / (power * factor) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def bars(data: dict[str, Any]) -> dict[str, Any]:
    """The histogram: samples above the axis, threshold samples below it on a scale of their own."""
    edges = data["edges"]
    low, high = edges[0], edges[-1]
    tallest = max(flagged + kept for flagged, kept in zip(data["flagged"], data["kept"], strict=True))
    deepest = max(data["threshold"], default=0)
    return {
        "bins": [
            {
                "x": number + GAP / 2,
                "flagged": flagged / tallest,
                "kept": kept / tallest,
                "threshold": threshold / deepest if deepest else 0,
                "title": _bin_title(edges[number], edges[number + 1], flagged, kept, threshold),
            }
            for number, (flagged, kept, threshold) in enumerate(
                zip(data["flagged"], data["kept"], data["threshold"], strict=True)
            )
        ],
        "num_bins": len(edges) - 1,
        "width": 1 - GAP,
        "has_threshold": deepest > 0,
        "ticks": [{"x": _across(value, low, high), "value": value} for value in ticks(low, high)],
        "levels": [
            {"y": count / tallest, "value": int(count)} for count in ticks(0, tallest, 4) if count and count % 1 == 0
        ],
        "cutoffs": _cutoffs(data["cutoffs"], low, high),
    }


def _bin_title(low: float, high: float, flagged: int, kept: int, threshold: int) -> str:
    return f"{low:.3g} to {high:.3g}: {flagged:,} flagged, {kept:,} kept, {threshold:,} threshold samples"


def _cutoffs(cutoffs: Sequence[dict[str, Any]], low: float, high: float) -> list[dict[str, Any]]:
    """A band for each fold that has a cutoff within sight; a single number is a band without width."""
    seen = [one for one in cutoffs if one["low"] is not None and low <= one["high"] and one["low"] <= high]
    return [
        {
            "fold": one["fold"],
            "x": _across(max(one["low"], low), low, high),
            "width": _across(min(one["high"], high), low, high) - _across(max(one["low"], low), low, high),
            "value": one["low"],
        }
        for one in seen
    ]


def _across(value: float, low: float, high: float) -> float:
    return round(100 * (value - low) / (high - low), 3)


def curves(data: dict[str, Any]) -> dict[str, Any]:
    """Margins over epochs, as paths in a square of 100 by 100."""
    values = [value for line in data["lines"] for value in line["margins"] if value is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    space = 0.05 * max(high - low, 1e-6)
    low, high = low - space, high + space
    epochs = data["epochs"]
    first, last = epochs[0], epochs[-1]
    return {
        "paths": [
            {"line": line, "path": _path(epochs, line["margins"], (first, last, low, high))} for line in data["lines"]
        ],
        "zero": 100 - _across(0, low, high),
        "levels": [{"y": 100 - _across(value, low, high), "value": value} for value in ticks(low, high, 5)],
        "ticks": [
            {"x": _across(value, first, last), "value": int(value) + 1}
            for value in ticks(first, last, 6)
            if value % 1 == 0
        ],
    }


def _path(epochs: Sequence[int], margins: Sequence[float | None], window: tuple[float, float, float, float]) -> str:
    """A line that breaks off where a sample was not shown in an epoch."""
    first, last, low, high = window
    words, is_down = [], False
    for epoch, margin in zip(epochs, margins, strict=True):
        if margin is None:
            is_down = False
            continue
        words.append(f"{'L' if is_down else 'M'}{_across(epoch, first, last):g} {100 - _across(margin, low, high):g}")
        is_down = True
    return " ".join(words)


def scale(rows: Sequence[dict[str, Any]]) -> float:
    """The share that fills the width of a table's bars: a round one just above all shares and most intervals.

    >>> scale([{"flagged_share": 0.041, "high": 0.06}, {"flagged_share": 0.02, "high": 0.9}])
    0.1
    """
    shares = [row["flagged_share"] for row in rows]
    ends = sorted(row["high"] for row in rows)
    reach = max([*shares, *ends[(len(ends) - 1) // 2 :][:1]], default=0)
    return next((top for top in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if reach <= top), 1.0)


def shades(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """A heat map's shade for each count: 0 for none, then by its square root, so that small ones can be told apart."""
    most = max((count for row in counts for count in row), default=0)
    return [[math.ceil(SHADES * math.sqrt(count / most)) if count else 0 for count in row] for row in counts]
