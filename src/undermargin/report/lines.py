"""The margins of a few samples from epoch to epoch, where a training recorded them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.folder import Folder
from undermargin.tracking.trajectories import Trajectories
from undermargin.verdicts.record import Verdicts

Ints = npt.NDArray[np.int64]

NUM_LINES = 4  # of each verdict


def lines(folder: Folder, verdicts: Verdicts) -> dict[str, Any] | None:
    """Margins of the most suspicious samples and of typical kept ones, from the first fold that recorded them."""
    for fold, scores in enumerate(verdicts.fold_scores):
        try:
            recorded = Trajectories.open(folder / f"fold{fold}" / "trajectories")
            chosen = _chosen(verdicts, np.isfinite(scores))
            margins = recorded.of(chosen.tolist())
        except InputError:
            continue
        if margins.size and len(margins) > 1:
            told = [_told(verdicts, int(index), margins[:, k]) for k, index in enumerate(chosen)]
            return {"fold": fold, "epochs": recorded.epochs, "lines": told}
    return None


def _chosen(verdicts: Verdicts, judged: npt.NDArray[np.bool_]) -> Ints:
    """The first flagged samples and those in the middle of the kept ones, among the samples that this fold judged."""
    order = verdicts.order[judged[verdicts.order]]
    kept = order[verdicts.is_kept[order]]
    middle = max(0, len(kept) // 2 - NUM_LINES // 2)
    return np.concatenate([order[verdicts.is_flagged[order]][:NUM_LINES], kept[middle : middle + NUM_LINES]])


def _told(verdicts: Verdicts, index: int, margins: npt.NDArray[np.float32]) -> dict[str, Any]:
    return {
        "index": index,
        "id": str(verdicts.ids[index]) if verdicts.ids is not None else str(index),
        "label": verdicts.name(int(verdicts.labels[index])) if verdicts.labels is not None else None,
        "verdict": verdicts[index],
        "margins": [float(value) if np.isfinite(value) else None for value in margins],
    }
