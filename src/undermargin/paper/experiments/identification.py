"""Precision and recall of the identifiers; histograms of AUM; who is found most suspicious."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.errors import ASYMMETRIC, UNIFORM, Setting
from undermargin.paper.kinds import IDENTIFIERS
from undermargin.paper.study import STUDIES, Preset, study, title
from undermargin.paper.tables import Table, percent

MEASURES = ("precision", "recall", "mcc", "average_precision", "flagged_share")
WORDNET_ID = re.compile(r"^n\d{8} ")  # part of a class's name in ImageNet's family; nothing to look at


def _sets(preset: Preset) -> tuple[str, ...]:
    return {"paper": ("cifar10", "cifar100", "tiny-imagenet"), "laptop": ("cifar10", "mnist"), "smoke": ("mnist",)}[
        preset
    ]


def _cells(preset: Preset, data: str, setting: Setting) -> list[Cell]:
    """The two folds are those of the aum recipe: where that was run they are not trained again."""
    return [Cell("identification", preset, data, *setting, "aum", seed) for seed in study(preset, data).seeds]


def _incv_cells(preset: Preset, data: str, setting: Setting) -> list[Cell]:
    return [Cell("fit", preset, data, *setting, "incv", seed) for seed in study(preset, data).seeds]


def _found(results: Results, data: str, setting: Setting, name: str) -> list[dict[str, float]]:
    if name == "incv":
        return [row["verdicts"] for row in results.all(_incv_cells(results.preset, data, setting)) if "verdicts" in row]
    found = results.all(_cells(results.preset, data, setting))
    return [row["identifiers"][name] for row in found if "identifiers" in row]


def _experiment(headline: str, claim: str, settings: Sequence[Setting]) -> Experiment:
    kind = settings[0][0]

    def cells(preset: Preset) -> list[Cell]:
        return [
            cell
            for data in _sets(preset)
            for setting in (settings[1:2] if preset == "smoke" else settings)
            for cell in (*_cells(preset, data, setting), *_incv_cells(preset, data, setting))
        ]

    def tables(results: Results) -> list[Table]:
        made = []
        for data in _sets(results.preset):
            rows = [
                [
                    name,
                    "pattern" if name == "incv" else "",
                    f"{rate:.0%}",
                    str(len(founds)),
                    *(percent([found[measure] for found in founds]) for measure in MEASURES),
                ]
                for name in (*IDENTIFIERS, "incv")
                for noise, rate in settings
                if (founds := _found(results, data, (noise, rate), name))
            ]
            text = f"{title(results.preset, data)}, {kind} noise: how well flipped labels are found, in %"
            columns = ["identifier", "needs", "rate", "seeds", *MEASURES]
            made.append(Table(f"identification-{data}-{kind}", caption(text, results), columns, rows))
        return made

    def drawn(results: Results) -> Figures:
        made: Figures = {}
        for data in _sets(results.preset):
            lines = {
                name: [(rate, _found(results, data, (noise, rate), name)) for noise, rate in settings]
                for name in (*IDENTIFIERS, "incv")
            }
            shown = {name: [(x, founds) for x, founds in points if founds] for name, points in lines.items()}
            shown = {name: points for name, points in shown.items() if points}
            if shown:
                text = caption(f"{title(results.preset, data)}, {kind} noise", results)
                rates = [rate for _, rate in settings]
                made[f"identification-{data}-{kind}"] = figures.precision_recall(shown, rates, text)
        return made

    cost = "two folds and one plain training of 150 epochs a rate and seed, and INCV"
    return Experiment(headline, claim, cost, cells, tables, drawn)


PRECISION_RECALL = _experiment(
    "Precision and recall by rate of uniform noise",
    "AUM tends to have the highest precision and recall, in most settings",
    UNIFORM,
)
PRECISION_RECALL_ASYMMETRIC = _experiment(
    "Precision and recall by rate of asymmetric noise",
    "high at 20 %; AUM's recall falls at 30 and 40 %, as that of BMM and GMM",
    ASYMMETRIC,
)


def _histogram_cells(preset: Preset) -> list[Cell]:
    sets = {"paper": ("cifar10", "cifar100"), "laptop": ("cifar10", "mnist"), "smoke": ("cifar10",)}[preset]
    return [_cells(preset, data, ("uniform", 0.4))[0] for data in sets]


def _histograms(results: Results) -> Figures:
    found = _by_title(results, _histogram_cells(results.preset))
    text = caption("AUM in the first fold, 40 % uniform noise", results)
    return {"histograms": figures.histograms(found, text)} if found else {}


def _by_title(results: Results, cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """The numbers of those that were run, by what their data sets are called."""
    return {title(results.preset, cell.data): numbers for cell in cells if (numbers := results.numbers(cell))}


HISTOGRAMS = Experiment(
    "AUM of clean, mislabeled and threshold samples",
    "the 99th percentile of the threshold samples separates clean from mislabeled",
    "two folds and one plain training of 150 epochs on each data set",
    _histogram_cells,
    figures=_histograms,
)


def _real_cells(preset: Preset) -> list[Cell]:
    return [_cells(preset, data, ("none", 0.0))[0] for data in STUDIES[preset]]


def _densities(results: Results) -> Figures:
    found = _by_title(results, _real_cells(results.preset))
    text = caption("AUM in the first fold, labels as they are", results)
    return {"densities": figures.histograms(found, text)} if found else {}


def _lowest(results: Results) -> Figures:
    from undermargin.paper.prepared import fingerprint, official_training_set

    made: Figures = {}
    for cell in _real_cells(results.preset):
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
    """Which samples our own runs flag, most suspicious first, and who was judged where that is a part of the set.

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
            made.append(_list(f"flagged-{cell.data}", columns))
            if arrays["judged"][-1] >= len(arrays["judged"]):
                made.append(_list(f"judged-{cell.data}", {"index": arrays["judged"]}))
    return made


def _list(name: str, columns: dict[str, Any]) -> Table:
    """One that is written and not shown."""
    rows = [[str(value) for value in row] for row in zip(*columns.values(), strict=True)]
    return Table(name, "", list(columns), rows, is_listed=False)


DENSITIES = Experiment(
    "AUM of data sets as they are, and which samples are flagged",
    "densities have one mode, the cutoff differs from set to set",
    "two folds and one plain training on each data set",
    _real_cells,
    _flagged_lists,
    _densities,
)
LOWEST = Experiment(
    "Images with the lowest AUM",
    "some are clearly mislabeled, others ambiguous",
    "two folds and one plain training on each data set",
    _real_cells,
    figures=_lowest,
)
