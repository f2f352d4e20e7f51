"""What AUM depends on, and what it does not: each experiment changes one thing."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from undermargin.paper import figures
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Figures, Results, caption
from undermargin.paper.experiments.grid import MIDDLE, WITHOUT_DESKTOP
from undermargin.paper.kinds import TURNS
from undermargin.paper.study import Preset
from undermargin.paper.tables import Table, percent

ARCHITECTURES = {
    "paper": ("resnet32", "resnet56", "densenet40", "densenet100"),
    "laptop": ("resnet8-half", "resnet14-half", "densenet22-half", "densenet28-half"),
    "smoke": ("small", "small-wide"),
}
PART_SIZES = {"paper": (5_000, 10_000, 20_000), "laptop": (1_000, 2_000, 5_000), "smoke": (120,)}
EXTRA_SEEDS = {"paper": range(4), "laptop": range(3), "smoke": range(1)}  # a small effect: one seed cannot show it


def _noisy(preset: Preset, kind: str, recipe: str = "aum", seed: int = 0) -> Cell:
    return Cell(kind, preset, "cifar10", *MIDDLE, recipe, seed)


def _architecture_cells(preset: Preset) -> list[Cell]:
    """Every network once, and the first with another seed: more than these two, networks can hardly agree."""
    networks = ARCHITECTURES[preset]
    base = _noisy(preset, "architecture")
    first = [base.varied(model=name) for name in networks]
    return [*first, base.varied(model=networks[0], training_seed=1)]


RANKED = {
    "aum": "AUM",
    "last_margin": "margin",
    "last_loss": "training loss",
    "held_out_loss": "validation loss",
}  # by what the paper's figure calls them


def _correlations(results: Results) -> tuple[list[str], dict[str, npt.NDArray[np.float64]], dict[str, float]]:
    """The networks that were run; for every score their rank correlations, (networks, networks), and the correlation
    of the first network with itself, trained with another seed."""
    *cells, again = _architecture_cells(results.preset)
    arrays = {cell.option("model"): found for cell in cells if (found := results.arrays(cell)) is not None}
    if len(arrays) < 2:
        return [], {}, {}
    from scipy.stats import rankdata

    ranks = {score: [rankdata(found[score]) for found in arrays.values()] for score in RANKED}
    second, first = results.arrays(again), arrays.get(again.option("model"))
    ceiling = {}
    if second is not None and first is not None:
        pairs = {score: (rankdata(first[score]), rankdata(second[score])) for score in RANKED}
        ceiling = {score: float(np.corrcoef(*pair)[0, 1]) for score, pair in pairs.items()}
    return list(arrays), {score: np.corrcoef(some) for score, some in ranks.items()}, ceiling


def _architectures(results: Results) -> list[Table]:
    networks, correlations, ceiling = _correlations(results)
    pairs = {score: matrix[np.triu_indices(len(networks), 1)] for score, matrix in correlations.items()}
    rows = [
        [score, f"{some.mean():.3f}", f"{some.min():.3f}", f"{ceiling[score]:.3f}" if score in ceiling else ""]
        for score, some in pairs.items()
    ]
    title = f"CIFAR-10, 40 % uniform noise: rank correlation between {', '.join(networks)}"
    columns = ["score", "mean of pairs", "lowest pair", "one network, two seeds"]
    return [Table("architectures", caption(title, results), columns, rows)]


def _architecture_figure(results: Results) -> Figures:
    networks, correlations, _ = _correlations(results)
    if not networks:
        return {}
    text = caption("CIFAR-10, 40 % uniform noise: rank correlation between networks", results)
    panels = {RANKED[score]: matrix for score, matrix in correlations.items()}
    return {"architectures": figures.matrices(panels, networks, text)}


ARCHITECTURE = Experiment(
    "Rank correlation across architectures",
    "AUM above .98 between all pairs; margin and training loss about .75, validation loss .40",
    "one training and two on halves for each network",
    _architecture_cells,
    _architectures,
    _architecture_figure,
    presets=WITHOUT_DESKTOP,
)


def _identified(name: str, title: str, claim: str, cost: str, cells: Callable[[Preset], dict[str, Cell]]) -> Experiment:
    """AUM's verdicts in a few variants, one row each."""
    measures = ("average_precision", "mcc", "precision", "recall", "flagged_share")

    def table(results: Results) -> list[Table]:
        rows = [
            [label, *(percent([numbers["identifiers"]["aum"][measure]]) for measure in measures)]
            for label, cell in cells(results.preset).items()
            if (numbers := results.numbers(cell))
        ]
        text = caption("CIFAR-10, 40 % uniform noise: AUM's verdicts, in %", results)
        return [Table(name, text, ["", *measures], rows)]

    return Experiment(title, claim, cost, lambda preset: list(cells(preset).values()), table, presets=WITHOUT_DESKTOP)


def _batches(preset: Preset) -> dict[str, Cell]:
    base = _noisy(preset, "identification")
    large = base.varied(fold_batch_size=256, batch_size=256)
    return {f"batches of {cell.study.fold_batch_size}": cell for cell in (base, large)}


BATCH_SIZE = _identified(
    "batch-size",
    "AUM with batches of 64 and of 256",
    "smaller batches memorize less and make AUM more salient",
    "two folds each",
    _batches,
)


def _stops(preset: Preset) -> dict[str, Cell]:
    base = _noisy(preset, "identification")
    return {"before the first drop": base, "to the end": base.varied(is_whole=True)}


STOPPING = _identified(
    "stopping",
    "Stopping before the learning rate drops, or training to the end",
    "stopping early prevents that difficult and mislabeled samples are memorized",
    "two folds of 150 and two of 300 epochs",
    _stops,
)


def _extra_cells(preset: Preset) -> list[Cell]:
    return [_noisy(preset, "extra class", seed=seed) for seed in EXTRA_SEEDS[preset]]


def _extra(results: Results) -> list[Table]:
    cells = _extra_cells(results.preset)
    found = [numbers["test_error"] for numbers in results.all(cells)]
    names = ("without", "with") if found else ()
    rows = [[name, percent([errors[name] for errors in found], len(cells))] for name in names]
    title = "CIFAR-10, 40 % uniform noise: test error in %, without and with the extra class"
    return [Table("extra-class", caption(title, results), ["threshold samples", "test error"], rows)]


EXTRA_CLASS = Experiment(
    "The extra class does not disturb the others",
    "the additional classification task does not interfere with the primary classifier",
    "two trainings of 150 epochs, and 4 seeds of that",
    _extra_cells,
    _extra,
    presets=WITHOUT_DESKTOP,
)


def _cost_cell(preset: Preset) -> Cell:
    return _noisy(preset, "cost")


def _cost(results: Results) -> list[Table]:
    numbers = results.numbers(_cost_cell(results.preset))
    if numbers is None:
        return []
    whole, folds = numbers["seconds"]["training"], numbers["seconds"]["folds"]
    rows = [
        ["one training", f"{whole:.0f}"],
        ["the two folds of AUM", f"{folds:.0f}"],
        ["ratio", f"{folds / whole:.2f}"],
    ]
    title = f"CIFAR-10: seconds, from the median of {TURNS} epochs that took turns"
    return [Table("cost", caption(title, results), ["", "seconds"], rows)]


COST = Experiment(
    "The cost of AUM against one normal training",
    "roughly the same amount of computation",
    "five epochs of each",
    lambda preset: [_cost_cell(preset)],
    _cost,
    presets=WITHOUT_DESKTOP,
)


def _sizes(preset: Preset) -> dict[str, Cell]:
    whole = _noisy(preset, "identification")
    parts = [whole.varied(num_train=size) for size in PART_SIZES[preset]]
    return {f"{cell.study.num_train:,} samples": cell for cell in (*parts, whole)}


SET_SIZE = _identified(
    "set-size",
    "AUM on growing data sets",
    "AUM removes less of Clothing1M (10.7 %) than of its 100K part (16.7 %); larger sets may be harder to identify in",
    "two folds for every size",
    _sizes,
)
