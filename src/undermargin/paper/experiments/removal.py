"""How much is removed: a share of the samples, or what a percentile of the threshold samples leaves below it."""

from typing import Any

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.study import Preset, title
from undermargin.paper.tables import Table, percent
from undermargin.procedure import Procedure

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
RANKINGS = {"aum": "lowest AUM", "random": "by lot"}
PERCENTILES = (80, 90, 95, 97, 99, 100)


def _hundred(preset: Preset) -> str:
    """The paper's ablations are on CIFAR-100; on a laptop 20 classes of Tiny ImageNet stand in."""
    return "tiny-imagenet" if preset == "laptop" else "cifar100"


def _title(preset: Preset) -> str:
    data = _hundred(preset)
    return title(preset, data) + ("" if data == "cifar100" else ", in place of CIFAR-100")


def _removal_cells(preset: Preset) -> list[Cell]:
    base = Cell("removal", preset, _hundred(preset))
    nothing, *shares = SHARES[::4] if preset == "smoke" else SHARES
    varied = [base.varied(ranking=ranking, share=share) for share in shares for ranking in RANKINGS]
    return [base.varied(ranking="aum", share=nothing), *varied]  # nothing is the same by any ranking


def _removal(results: Results) -> Figures:
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in RANKINGS.values()}
    for cell in _removal_cells(results.preset):
        if numbers := results.numbers(cell):
            for ranking in (cell.option("ranking"),) if cell.option("share") else RANKINGS:
                lines[RANKINGS[ranking]].append((100 * cell.option("share"), 100 * numbers["test_error"]))
    if not any(lines.values()):
        return {}
    fold = Cell("identification", results.preset, _hundred(results.preset))
    found = results.numbers(fold)
    removed = None if found is None else 100 * float(found["removed"])
    text = caption(f"{_title(results.preset)}: error by share removed", results)
    return {"removal": figures.curves(lines, text, "share removed in %", "test error in %", removed)}


REMOVAL = Experiment(
    "Test error by amount removed, by AUM ranking and by lot",
    "the best amount is that of the 99th percentile; removing by lot only harms",
    "15 trainings of 300 epochs, after two folds",
    lambda preset: [Cell("identification", preset, _hundred(preset)), *_removal_cells(preset)],
    figures=_removal,
)


def _percentile_cells(preset: Preset, *, is_noisy: bool) -> dict[int, Cell]:
    """By percentile; the procedure's own is the recipe as it is, which the tables of errors ask for as well."""
    data = _hundred(preset)
    base = Cell("fit", preset, data, "uniform", 0.4) if is_noisy else Cell("fit", preset, data)
    shares = PERCENTILES[::4] if preset == "smoke" else PERCENTILES
    return {share: base if share == Procedure.paper.percentile else base.varied(percentile=share) for share in shares}


def _percentile_lines(results: Results) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    return {
        name: [
            (share, numbers)
            for share, cell in _percentile_cells(results.preset, is_noisy=is_noisy).items()
            if (numbers := results.numbers(cell))
        ]
        for name, is_noisy in (("40 % uniform noise", True), ("as it is", False))
    }


def _percentile_table(results: Results) -> list[Table]:
    measures = ("mcc", "precision", "recall", "flagged_share")
    rows = []
    for name, line in _percentile_lines(results).items():
        for share, numbers in line:
            found = numbers["verdicts"]
            if found["mcc"] is None:  # nobody knows who is mislabeled
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
    lambda preset: [cell for noisy in (True, False) for cell in _percentile_cells(preset, is_noisy=noisy).values()],
    _percentile_table,
    _percentiles,
)
