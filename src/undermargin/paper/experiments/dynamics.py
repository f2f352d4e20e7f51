"""What single samples do during training: logits, margins, and the running mean that AUM is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.study import Preset


def _cells(preset: Preset) -> list[Cell]:
    return [Cell("trajectories", preset, "cifar10", "uniform", 0.4)]


def _chosen(arrays: Mapping[str, Any]) -> dict[str, int]:
    """An easy, a hard and a mislabeled sample: highest and low AUM of the clean ones, the median of the others."""
    aum, is_flipped = arrays["aum"], arrays["is_flipped"]
    clean, flipped = np.flatnonzero(~is_flipped), np.flatnonzero(is_flipped)
    by_aum = clean[aum[clean].argsort()]
    return {
        "easy": int(by_aum[-1]),
        "hard": int(by_aum[len(by_aum) // 10]),
        "mislabeled": int(flipped[aum[flipped].argsort()[len(flipped) // 2]]),
    }


def _trajectories(results: Results) -> Figures:
    (cell,) = _cells(results.preset)
    arrays, numbers = results.arrays(cell), results.numbers(cell)
    if arrays is None or numbers is None:
        return {}
    panels = {name: arrays["logits"][:, index] for name, index in _chosen(arrays).items()}
    title = caption(f"Logits of three samples labeled {numbers['label']}, 40 % uniform noise", results)
    return {"trajectories": figures.logits(panels, 0, title)}


def _margins(results: Results) -> Figures:
    (cell,) = _cells(results.preset)
    arrays = results.arrays(cell)
    if arrays is None:
        return {}
    chosen = _chosen(arrays)
    lines = {"clean": _margin(arrays["logits"][:, chosen["hard"]])}
    lines["mislabeled"] = _margin(arrays["logits"][:, chosen["mislabeled"]])
    return {"margins": figures.margins(lines, caption("A clean and a mislabeled sample, 40 % uniform noise", results))}


def _margin(logits: np.ndarray) -> np.ndarray:
    """Of the first class at every epoch: (epochs, classes) to (epochs,)."""
    return np.asarray(logits[:, 0] - logits[:, 1:].max(1))


TRAJECTORIES = Experiment(
    "Logits of an easy, a hard and a mislabeled sample",
    "the assigned logit of a clean sample outgrows the others; that of a mislabeled one stays below its true class",
    "one fold of 150 epochs",
    _cells,
    figures=_trajectories,
)
MARGINS = Experiment(
    "Margin against AUM over epochs",
    "margins of a clean and a mislabeled sample cross many times, their running means do not",
    "the training of the trajectories",
    _cells,
    figures=_margins,
)
