"""Which labels look like which others among the flagged samples: a square of counts, its size bounded."""

from typing import Any

import numpy as np

from undermargin.verdicts.record import Verdicts

MAX_CLASSES = 20
MAX_PAIRS = 8


def confusions(verdicts: Verdicts) -> dict[str, Any] | None:
    """Counts of given label (rows) against suggested label (columns), for the classes confused most often."""
    labels, suggested = verdicts.labels, verdicts.suggested_labels
    if labels is None or suggested is None:
        return None
    counted = verdicts.is_flagged & (suggested >= 0) & (suggested != labels)
    if not counted.any():
        return None
    pairs, counts = np.unique(np.stack([labels[counted], suggested[counted]]), axis=1, return_counts=True)
    involved = np.bincount(pairs.ravel(), np.tile(counts, 2))
    chosen = np.sort(np.argsort(-involved, kind="stable")[: min(MAX_CLASSES, int((involved > 0).sum()))])
    square = np.zeros((len(chosen), len(chosen)), int)
    is_shown = np.isin(pairs, chosen).all(0)
    square[tuple(np.searchsorted(chosen, pairs[:, is_shown]))] = counts[is_shown]
    strongest = np.argsort(-counts, kind="stable")[:MAX_PAIRS]
    return {
        "labels": [verdicts.name(int(label)) for label in chosen],
        "counts": square.tolist(),
        "num_shown": int(counts[is_shown].sum()),
        "num_samples": int(counts.sum()),
        "num_classes": int((involved > 0).sum()),
        "pairs": [
            {
                "label": verdicts.name(int(pairs[0, k])),
                "suggested_label": verdicts.name(int(pairs[1, k])),
                "num_samples": int(counts[k]),
            }
            for k in strongest
        ],
    }
