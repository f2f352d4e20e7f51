"""How much is removed: a share of the samples, or what lies below a percentile of the threshold samples."""

from typing import TYPE_CHECKING, Any

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.grid import AS_IT_IS, MIDDLE, Setting
from undermargin.paper.experiments.identification import identified
from undermargin.paper.study import Preset, title
from undermargin.paper.tables import Table, percent
from undermargin.procedure import Procedure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
RANKINGS = {"aum": "lowest AUM", "random": "at random"}
RANDOM_ON_DESKTOP = (0.2, 0.4, 0.6)  # random removal is smooth: three points show it
PERCENTILES = (80, 90, 95, 97, 99, 100)
NAMES = {MIDDLE: "40 % uniform noise", AS_IT_IS: "as it is"}


def _data(preset: Preset) -> str:
    """The paper's ablations are on CIFAR-100; a desktop has CIFAR-10, a laptop 20 classes of Tiny ImageNet."""
    return {"desktop": "cifar10", "laptop": "tiny-imagenet"}.get(preset, "cifar100")


def _title(preset: Preset) -> str:
    data = _data(preset)
    return title(preset, data) + ("" if data == "cifar100" else ", in place of CIFAR-100")


def _removal_settings(preset: Preset) -> dict[str, Setting]:
    """By the name of the figure. The paper removes from a set as it is."""
    return {"removal": AS_IT_IS} | ({"removal-noisy": MIDDLE} if preset == "desktop" else {})


def _removal_cells(preset: Preset, setting: Setting) -> list[Cell]:
    base = Cell("removal", preset, _data(preset), *setting)
    nothing, *shares = SHARES[::4] if preset == "smoke" else SHARES
    varied = [
        base.varied(ranking=ranking, share=share)
        for share in shares
        for ranking in RANKINGS
        if preset != "desktop" or ranking == "aum" or share in RANDOM_ON_DESKTOP
    ]
    # removing nothing is the same by any ranking; on a desktop it is the cell of the tables
    whole = Cell("fit", preset, _data(preset), *setting, "standard")
    return [whole if preset == "desktop" else base.varied(ranking="aum", share=nothing), *varied]


def _removal(results: Results) -> Figures:
    drawn = {name: _removal_figure(results, setting) for name, setting in _removal_settings(results.preset).items()}
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _removal_figure(results: Results, setting: Setting) -> "Figure | None":
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in RANKINGS.values()}
    for cell in _removal_cells(results.preset, setting):
        if numbers := results.numbers(cell):
            share = cell.option("share", 0.0)
            for ranking in (cell.option("ranking"),) if share else RANKINGS:
                lines[RANKINGS[ranking]].append((100 * share, 100 * numbers["test_error"]))
    if not any(lines.values()):
        return None
    found = results.numbers(identified(results.preset, _data(results.preset), setting))
    removed = None if found is None else 100 * float(found["removed"])
    noise = "" if setting == AS_IT_IS and results.preset != "desktop" else f", {NAMES[setting]}"
    text = caption(f"{_title(results.preset)}{noise}: error by share removed", results)
    return figures.curves(lines, text, "share removed in %", "test error in %", removed)


REMOVAL = Experiment(
    "Test error by amount removed, by AUM ranking and at random",
    "the best amount is that of the 99th percentile; removing at random only harms",
    "15 trainings of 300 epochs, after two folds",
    lambda preset: [
        cell
        for setting in _removal_settings(preset).values()
        for cell in (identified(preset, _data(preset), setting), *_removal_cells(preset, setting))
    ],
    figures=_removal,
)


def _percentile_settings(preset: Preset) -> tuple[Setting, ...]:
    return (MIDDLE,) if preset == "desktop" else (MIDDLE, AS_IT_IS)


def _percentile_cells(preset: Preset, setting: Setting) -> dict[int, Cell]:
    """By percentile; the procedure's own is the recipe as the tables of errors have it."""
    base = Cell("fit", preset, _data(preset), *setting)
    shares = PERCENTILES[::4] if preset == "smoke" else PERCENTILES
    return {share: base if share == Procedure.paper.percentile else base.varied(percentile=share) for share in shares}


def _percentile_lines(results: Results) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    return {
        NAMES[setting]: [
            (share, numbers)
            for share, cell in _percentile_cells(results.preset, setting).items()
            if (numbers := results.numbers(cell))
        ]
        for setting in _percentile_settings(results.preset)
    }


def _percentile_table(results: Results) -> list[Table]:
    measures = ("mcc", "precision", "recall", "flagged_share")
    rows = []
    for name, line in _percentile_lines(results).items():
        for share, numbers in line:
            found = numbers["verdicts"]
            if found["mcc"] is None:  # it is not known which samples are mislabeled
                found = dict.fromkeys(measures) | {"flagged_share": found["flagged_share"]}
            values = (numbers["test_error"], *(found[measure] for measure in measures))
            rows.append([name, str(share), *(percent([value]) for value in values)])
    text = caption(f"{_title(results.preset)}: by percentile, in %", results)
    return [Table("percentiles", text, ["", "percentile", "test error", *measures], rows)]


def _percentiles(results: Results) -> Figures:
    lines = {
        name: [(share, 100 * numbers["test_error"]) for share, numbers in line]
        for name, line in _percentile_lines(results).items()
    }
    if not any(lines.values()):
        return {}
    text = caption(f"{_title(results.preset)}: error by percentile", results)
    return {"percentiles": figures.curves(lines, text, "percentile of threshold samples", "test error in %")}


PERCENTILE = Experiment(
    "Test error by percentile of the threshold samples",
    "the choice hardly matters on CIFAR-100 as it is; with 40 % noise higher is better, 90th 41 %, 99th 39 %",
    "6 trainings of 300 epochs, after two folds, with noise and without",
    lambda preset: [
        cell for setting in _percentile_settings(preset) for cell in _percentile_cells(preset, setting).values()
    ],
    _percentile_table,
    _percentiles,
)
