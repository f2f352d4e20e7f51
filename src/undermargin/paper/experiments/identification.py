"""Precision and recall of the identifiers, and histograms of AUM."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.grid import ASYMMETRIC, MIDDLE, UNIFORM, Setting, seeds, settings
from undermargin.paper.shared import DEFAULT, IDENTIFIERS
from undermargin.paper.study import Preset, title
from undermargin.paper.tables import Table, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("precision", "recall", "mcc", "average_precision", "flagged_share")
PLAIN = ""
AUGMENTED = "with augmentation"


def _sets(preset: Preset) -> tuple[str, ...]:
    return {
        "paper": ("cifar10", "cifar100", "tiny-imagenet"),
        "desktop": ("cifar10",),
        "laptop": ("cifar10", "mnist"),
        "smoke": ("mnist",),
    }[preset]


def variants(preset: Preset) -> tuple[str, ...]:
    """A desktop trains the folds without augmentation, as its tables of errors, and with it, as the paper."""
    return (PLAIN, AUGMENTED) if preset == "desktop" else (PLAIN,)


def identified(preset: Preset, data: str, setting: Setting, seed: int = 0, variant: str = PLAIN) -> Cell:
    """The cell that judges a data set; the two folds are those of the aum recipe, and are not trained twice."""
    cell = Cell("identification", preset, data, *setting, "aum", seed)
    if preset == "desktop":  # another default cutoff is another cell, which reads the same folds
        cell = cell.varied(cutoff=DEFAULT)
    return cell.varied(augmentation="crops") if variant == AUGMENTED else cell


def _cells(preset: Preset, data: str, setting: Setting, variant: str = PLAIN) -> list[Cell]:
    if variant == AUGMENTED:
        return [identified(preset, data, setting, variant=variant)]
    return [identified(preset, data, setting, seed) for seed in seeds(preset, data, setting)]


def _incv_cells(preset: Preset, data: str, setting: Setting) -> list[Cell]:
    if preset == "desktop":
        return []
    return [Cell("fit", preset, data, *setting, "incv", seed) for seed in seeds(preset, data, setting)]


def _found(results: Results, data: str, setting: Setting, name: str, variant: str) -> list[dict[str, float]]:
    if name == "incv":
        return [row["verdicts"] for row in results.all(_incv_cells(results.preset, data, setting)) if "verdicts" in row]
    found = results.all(_cells(results.preset, data, setting, variant))
    return [row["identifiers"][name] for row in found if name in row.get("identifiers", {})]


def _experiment(headline: str, claim: str, all_settings: Sequence[Setting]) -> Experiment:
    kind = all_settings[0][0]

    def cells(preset: Preset) -> list[Cell]:
        return [
            cell
            for data in _sets(preset)
            for variant in variants(preset)
            for setting in settings(preset, all_settings)
            for cell in (*_cells(preset, data, setting, variant), *_incv_cells(preset, data, setting))
        ]

    def tables(results: Results) -> list[Table]:
        return [
            _table(results, data, all_settings, variant)
            for data in _sets(results.preset)
            for variant in variants(results.preset)
        ]

    def drawn(results: Results) -> Figures:
        made = {
            named(f"identification-{data}-{kind}", variant): _curves(results, data, all_settings, variant)
            for data in _sets(results.preset)
            for variant in variants(results.preset)
        }
        return {name: figure for name, figure in made.items() if figure is not None}

    cost = "two folds and one plain training of 150 epochs per rate and seed, and INCV"
    return Experiment(headline, claim, cost, cells, tables, drawn)


def _curves(results: Results, data: str, all_settings: Sequence[Setting], variant: str) -> "Figure | None":
    lines = {
        name: [
            (rate, found)
            for noise, rate in all_settings
            if (found := _found(results, data, (noise, rate), name, variant))
        ]
        for name in (*IDENTIFIERS, "incv")
    }
    shown = {name: points for name, points in lines.items() if points}
    rates, text = [rate for _, rate in all_settings], caption(_where(results, data, all_settings, variant), results)
    return figures.precision_recall(shown, rates, text) if shown else None


def _where(results: Results, data: str, all_settings: Sequence[Setting], variant: str) -> str:
    words = (title(results.preset, data), f"{all_settings[0][0]} noise", variant)
    return ", ".join(filter(None, words))


def _table(results: Results, data: str, all_settings: Sequence[Setting], variant: str) -> Table:
    kind = all_settings[0][0]
    rows = [
        [
            name,
            "pattern" if name == "incv" else "",
            f"{rate:.0%}",
            str(len(founds)),
            *(percent([found[measure] for found in founds]) for measure in MEASURES),
        ]
        for name in (*IDENTIFIERS, "incv")
        for noise, rate in all_settings
        if (founds := _found(results, data, (noise, rate), name, variant))
    ]
    text = f"{_where(results, data, all_settings, variant)}: how well flipped labels are found, in %"
    columns = ["identifier", "needs", "rate", "seeds", *MEASURES]
    return Table(named(f"identification-{data}-{kind}", variant), caption(text, results), columns, rows)


def named(name: str, variant: str) -> str:
    """The name of a table or figure of a variant."""
    return f"{name}-augmented" if variant == AUGMENTED else name


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
    sets = {
        "paper": ("cifar10", "cifar100"),
        "desktop": ("cifar10",),
        "laptop": ("cifar10", "mnist"),
        "smoke": ("cifar10",),
    }[preset]
    return [identified(preset, data, MIDDLE, variant=variant) for data in sets for variant in variants(preset)]


def _histograms(results: Results) -> Figures:
    found = by_title(results, _histogram_cells(results.preset))
    text = caption("AUM in the first fold, 40 % uniform noise", results)
    return {"histograms": figures.histograms(found, text)} if found else {}


def by_title(results: Results, cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """The numbers of those that were run, by data set."""
    return {cell_title(cell): numbers for cell in cells if (numbers := results.numbers(cell))}


def cell_title(cell: Cell) -> str:
    """The data set of a cell in captions, and whether it was augmented where both variants are run."""
    variant = variant_of(cell) or "without augmentation" * (cell.preset == "desktop")
    return ", ".join(filter(None, (title(cell.preset, cell.data), variant)))


def variant_of(cell: Cell) -> str:
    """Which of the variants a cell is."""
    return AUGMENTED if cell.option("augmentation") else PLAIN


HISTOGRAMS = Experiment(
    "AUM of clean, mislabeled and threshold samples",
    "the 99th percentile of the threshold samples separates clean from mislabeled",
    "two folds and one plain training of 150 epochs on each data set",
    _histogram_cells,
    figures=_histograms,
)
