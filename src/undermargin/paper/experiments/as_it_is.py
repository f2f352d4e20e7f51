"""Data sets as they are: densities of AUM, the share that is flagged, and the most suspicious samples."""

import re
from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.grid import AS_IT_IS
from undermargin.paper.experiments.identification import (
    PLAIN,
    by_title,
    cell_title,
    identified,
    named,
    variant_of,
    variants,
)
from undermargin.paper.shared import IDENTIFIERS
from undermargin.paper.study import STUDIES, Preset, title
from undermargin.paper.tables import Table, percent

WORDNET_ID = re.compile(r"^n\d{8} ")  # part of a class's name in ImageNet's family; not worth showing


def _real_cells(preset: Preset) -> list[Cell]:
    return [
        identified(preset, data, AS_IT_IS, variant=variant) for data in STUDIES[preset] for variant in variants(preset)
    ]


def _drawn_cells(preset: Preset) -> list[Cell]:
    """Those whose samples of lowest AUM are drawn: where there are two variants, the paper's."""
    return [cell for cell in _real_cells(preset) if cell.option("augmentation") or len(variants(preset)) == 1]


def _densities(results: Results) -> Figures:
    found = by_title(results, _real_cells(results.preset))
    text = caption("AUM in the first fold, labels as they are", results)
    return {"densities": figures.histograms(found, text)} if found else {}


def _lowest(results: Results) -> Figures:
    from undermargin.paper.prepared import fingerprint, official_training_set

    made: Figures = {}
    for cell in _drawn_cells(results.preset):
        if numbers := results.numbers(cell):
            try:
                train = official_training_set(cell.study, results.root)
            except InputError:  # the images are not here any more: what was drawn before stays
                continue
            if fingerprint(train) != results.source(cell).get("fingerprint"):
                continue  # places in another version of the data set are those of other images
            lowest = train.subset(np.array(numbers["lowest"]))
            names = [WORDNET_ID.sub("", lowest.class_names[label]) for label in lowest.labels]
            made[f"lowest-{cell.data}"] = figures.grid(
                figures.decoded(lowest), names, caption(f"{title(results.preset, cell.data)}: lowest AUM", results)
            )
    return made


def _flagged_lists(results: Results) -> list[Table]:
    """The samples that our own runs flag, most suspicious first; and those judged, where that is a part of the set.

    A sample's index is its place in the training set as it was read.
    """
    made = []
    for cell in _real_cells(results.preset):
        arrays = results.arrays(cell)
        if arrays is not None and "judged" in arrays:
            of_all = dict(zip(arrays["judged"], arrays["aum"], strict=True))
            columns = {
                "index": arrays["flagged"],
                **({"file": arrays["files"]} if "files" in arrays else {}),
                "label": arrays["labels"],
                "aum": [f"{of_all[index]:.4f}" for index in arrays["flagged"]],
            }
            made.append(_list(named(f"flagged-{cell.data}", variant_of(cell)), columns))
            if arrays["judged"][-1] >= len(arrays["judged"]) and variant_of(cell) == PLAIN:  # the same in any variant
                made.append(_list(f"judged-{cell.data}", {"index": arrays["judged"]}))
    return made


def _list(name: str, columns: dict[str, Any]) -> Table:
    """A table that is written to a file and not shown in the docs."""
    rows = [[str(value) for value in row] for row in zip(*columns.values(), strict=True)]
    return Table(name, "", list(columns), rows, is_listed=False)


def _removed(results: Results) -> list[Table]:
    """The share that each identifier flags of a set as it is, beside the lists of flagged samples."""
    if results.preset != "desktop":
        return _flagged_lists(results)
    rows = [
        [cell_title(cell), *(percent([numbers["identifiers"][name]["flagged_share"]]) for name in IDENTIFIERS)]
        for cell in _real_cells(results.preset)
        if (numbers := results.numbers(cell))
    ]
    text = caption("CIFAR-10 as it is: share flagged, in % (the paper: AUM 3.0)", results)
    return [Table("removed", text, ["", *IDENTIFIERS], rows), *_flagged_lists(results)]


DENSITIES = Experiment(
    "AUM of data sets as they are, and which samples are flagged",
    "densities have one mode, the cutoff differs from set to set",
    "two folds and one plain training on each data set",
    _real_cells,
    _removed,
    _densities,
)
LOWEST = Experiment(
    "Images with the lowest AUM",
    "some are clearly mislabeled, others ambiguous",
    "two folds and one plain training on each data set",
    _drawn_cells,
    figures=_lowest,
)
