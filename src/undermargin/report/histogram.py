"""How the scores are spread: flagged and kept samples, the threshold samples, and where the cutoffs lie."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.tracking.run import Run
from undermargin.verdicts.record import Verdicts

Floats = npt.NDArray[np.float64]

NUM_BINS = 64
TAIL = 0.001  # share of the scores at each end that may lie beyond the outermost bins, and is counted in them


def histogram(verdicts: Verdicts, runs: Sequence[Run], cutoffs: Sequence[Any]) -> dict[str, Any] | None:
    """Counts in common bins, and a cutoff a fold; None where nobody was judged."""
    scores = np.asarray(verdicts.scores, np.float64)
    judged = ~np.isnan(scores)
    if not judged.any():
        return None
    threshold = np.concatenate([run.scores[run.is_threshold & ~np.isnan(run.scores)] for run in runs])
    # P(mislabeled) has no cutoff on the scores
    lines = [_cutoff(run.fold, value) for run, value in zip(runs, cutoffs, strict=True)] if cutoffs else []
    everything = np.concatenate([scores[judged], threshold])
    ends = [value for line in lines for value in (line["low"], line["high"]) if value is not None]
    edges = _edges(everything, ends)
    return {
        "edges": edges.tolist(),
        "flagged": _counts(scores[verdicts.is_flagged], edges),
        "kept": _counts(scores[verdicts.is_kept], edges),
        "threshold": _counts(threshold, edges),
        "num_beyond": int(((everything < edges[0]) | (everything > edges[-1])).sum()),
        "cutoffs": lines,
    }


def _cutoff(fold: int, value: Any) -> dict[str, Any]:
    """From where to where a fold's cutoffs reach: one number, or one a class."""
    values = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    return {"fold": fold, "low": min(values, default=None), "high": max(values, default=None)}


def _edges(scores: Floats, cutoffs: Sequence[float]) -> Floats:
    low, high = np.quantile(scores, [TAIL, 1 - TAIL])
    # a number typed in as the cutoff may lie far away from all scores; it must not squeeze them
    span = max(high - low, 1e-6)
    near = [value for value in cutoffs if low - span < value < high + span]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.01 * max(high - low, 1e-6)
    return np.linspace(low - margin, high + margin, NUM_BINS + 1)


def _counts(scores: Floats, edges: Floats) -> list[int]:
    counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
    return [int(count) for count in counts]
