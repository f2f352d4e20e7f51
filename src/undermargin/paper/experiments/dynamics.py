"""Single samples during training: logits, margins, and AUM as a running mean."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.grid import MIDDLE
from undermargin.paper.kinds import LABEL
from undermargin.paper.study import Preset
from undermargin.paper.tables import Table, percent

AVERAGED = 50  # samples per panel


def _cells(preset: Preset) -> list[Cell]:
    return [Cell("trajectories", preset, "cifar10", *MIDDLE)]


def _chosen(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Easy and hard samples, which are clean ones with the lowest and the highest mean training loss (paper:
    trajectories), and the first mislabeled ones."""
    clean, flipped = np.flatnonzero(~arrays["is_flipped"]), np.flatnonzero(arrays["is_flipped"])
    logits = arrays["logits"][:, clean]
    losses = (np.logaddexp.reduce(logits, axis=2) - logits[:, :, LABEL]).mean(0)
    by_loss = clean[losses.argsort()]
    return {"easy": by_loss[:AVERAGED], "hard": by_loss[-AVERAGED:], "mislabeled": flipped[:AVERAGED]}


def _trajectories(results: Results) -> Figures:
    (cell,) = _cells(results.preset)
    arrays, numbers = results.arrays(cell), results.numbers(cell)
    if arrays is None or numbers is None:
        return {}
    label, true_label = numbers["label"], numbers["true_label"]
    panels = {
        f"{len(chosen)} {name}" + (f", truly {true_label}" if name == "mislabeled" else ""): arrays["logits"][
            :, chosen
        ].mean(1)
        for name, chosen in _chosen(arrays).items()
    }
    title = caption(f"Mean logits of samples labeled {label}, 40 % uniform noise", results)
    return {"trajectories": figures.logits(panels, LABEL, title)}


def _margins(results: Results) -> Figures:
    (cell,) = _cells(results.preset)
    arrays = results.arrays(cell)
    if arrays is None:
        return {}
    groups = {"clean": ~arrays["is_flipped"], "mislabeled": arrays["is_flipped"]}
    lines = {name: _margin(arrays["logits"][:, _median(arrays["aum"], group)]) for name, group in groups.items()}
    return {
        "margins": figures.margins(
            lines, caption("A clean and a mislabeled sample, each of median AUM, 40 % uniform noise", results)
        )
    }


def _learned(results: Results) -> list[Table]:
    """The share of samples that the network predicts as their label in the last epoch; wrong labels are memorized."""
    (cell,) = _cells(results.preset)
    arrays, numbers = results.arrays(cell), results.numbers(cell)
    if arrays is None or numbers is None:
        return []
    is_flipped, is_taken = arrays["is_flipped"], _margin(arrays["logits"][-1]) > 0
    groups = {"clean": ~is_flipped, f"mislabeled, truly {numbers['true_label']}": is_flipped}
    rows = [
        [name, str(group.sum()), percent([is_taken[group].mean()])] for name, group in groups.items() if group.any()
    ]
    text = f"Samples labeled {numbers['label']}, 40 % uniform noise: taken for it in the last epoch, in %"
    return [Table("learned", caption(text, results), ["samples", "number", "taken for their label"], rows)]


def _median(aum: np.ndarray, group: np.ndarray) -> np.intp:
    """The sample of the group with the median AUM."""
    places = np.flatnonzero(group)
    return np.intp(places[aum[places].argsort()[len(places) // 2]])


def _margin(logits: np.ndarray) -> np.ndarray:
    """The margin of the label: (epochs or samples, classes) to (epochs or samples,)."""
    return np.asarray(logits[:, LABEL] - np.delete(logits, LABEL, axis=1).max(1))


TRAJECTORIES = Experiment(
    "Logits of easy, hard and mislabeled samples",
    "the assigned logit of a clean sample outgrows the others; that of a mislabeled one stays below its true class",
    "one fold of 150 epochs",
    _cells,
    _learned,
    _trajectories,
)
MARGINS = Experiment(
    "Margin against AUM over epochs",
    "margins of a clean and a mislabeled sample cross several times, their running means part after a few epochs",
    "the training of the trajectories",
    _cells,
    figures=_margins,
)
