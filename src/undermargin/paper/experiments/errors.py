"""Test error of every recipe under noise: the paper's tables, and MNIST beside them."""

from collections.abc import Sequence

from undermargin.paper import published
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Results, caption
from undermargin.paper.experiments.grid import (
    AS_IT_IS,
    ASYMMETRIC,
    COMPARED,
    DEFAULT_VERDICTS,
    MIDDLE,
    UNIFORM,
    WITHOUT_DESKTOP,
    Setting,
    cells,
    compared,
    seeded,
    settings,
)
from undermargin.paper.published import DIVERGED, Numbers
from undermargin.paper.shared import OF_FOLDS, OF_PLAIN
from undermargin.paper.study import STUDIES, TITLES, Preset, study, title
from undermargin.paper.tables import Table, percent
from undermargin.paper.tables import published as as_published
from undermargin.recipes import RECIPES

LONGER = "; INCV takes about 3.5 such trainings, aum and co-teaching 2"
TINY = ("standard", "random_weighting", "data_parameters", "dy_bootstrap", "incv", "aum", "oracle")
# the paper leaves out recipes that must be told the noise rate
WITHOUT_RATE = tuple(name for name in COMPARED if name not in ("co_teaching", "mentornet", "mentornet_dd"))
SHOWN = tuple(dict.fromkeys([*COMPARED[:-2], *OF_PLAIN, *OF_FOLDS, "oracle", *RECIPES]))  # rows, in this order


def needs(row: str) -> str:
    """What a row's recipe must be told, besides the labels."""
    return ", ".join(RECIPES[row].needs) if row in RECIPES else ""


def _table(
    results: Results, name: str, data: str, all_settings: Sequence[Setting], theirs: Numbers, rates: Sequence[float]
) -> Table:
    """Ours beside the paper's; a recipe of which nothing was run has no row."""
    chosen = all_settings if results.preset == "smoke" else settings(results.preset, all_settings)
    columns = ["recipe", "needs"]
    for noise, rate in chosen:
        columns += [f"{noise} {rate:.0%}", *([f"paper {rate:.0%}"] if rate in rates and theirs else [])]
    rows = []
    for recipe in SHOWN:
        texts = [error(results, seeded(results.preset, data, setting, recipe)) for setting in chosen]
        if not any(texts):
            continue
        row = [recipe, needs(recipe)]
        for (_, rate), text in zip(chosen, texts, strict=True):
            number = theirs[recipe][rates.index(rate)] if recipe in theirs and rate in rates else None
            row += [text, *([as_published(number)] if rate in rates and theirs else [])]
        rows.append(row)
    note = _note(results.preset, data, has_l_dmi=any(row[0] == "l_dmi" for row in rows), is_compared=bool(theirs))
    return Table(name, caption(f"{title(results.preset, data)}: test error", results, note), columns, rows)


def _note(preset: Preset, data: str, *, has_l_dmi: bool, is_compared: bool) -> str:
    """How the table's numbers came about."""
    how = study(preset, data)
    length = f"{how.budget.epochs} epochs" + (" without augmentation" if preset == "desktop" else "")
    note = f"{how.model}, {how.num_train or 'all'} samples, {length}; final-epoch test error in %"
    if how.image_size is not None:
        note = f"{how.image_size} pixels a side, {note}"
    if how.num_test is not None:
        note += f" of {how.num_test} test samples"
    if has_l_dmi:
        note += "; of l_dmi, the epoch that is best on held-out noisy labels, as its authors choose"
    if preset == "paper":
        note += "; every recipe by the paper's own schedule, not by its authors'"
    if preset == "desktop":
        return note + "; the paper's are of ResNet-32 after 300 epochs with augmentation" * is_compared
    if is_compared:  # neither is said in the paper
        note += "; its Bootstrap may be soft or hard, with either sign of the entropy, its MentorNet either kind"
    return note


def error(results: Results, same: Sequence[Cell]) -> str:
    """Mean test error over cells that differ only in their seed, as text."""
    if results.has_diverged(same):
        return DIVERGED
    return percent([numbers["test_error"] for numbers in results.all(same)], len(same))


def _removed(results: Results, data: str, row: str) -> str:
    found = results.all(seeded(results.preset, data, AS_IT_IS, row))
    return percent([numbers["verdicts"]["flagged_share"] for numbers in found if "verdicts" in numbers])


def _real_cells(preset: Preset) -> list[Cell]:
    rows = ("standard", "aum", DEFAULT_VERDICTS) if preset == "desktop" else tuple(published.REAL)
    return [one for data in _real_sets(preset) for one in cells(preset, data, [AS_IT_IS], rows)]


def _real_sets(preset: Preset) -> list[str]:
    return [data for data in (*published.REAL_DATA, "mnist") if data in STUDIES[preset]]


def _real_table(results: Results) -> list[Table]:
    sets = _real_sets(results.preset)
    columns = ["recipe", "needs"]
    for data in sets:
        columns += [title(results.preset, data), *(["paper"] if _is_comparable(results.preset, data) else [])]
    rows = []
    for recipe in dict.fromkeys([*published.REAL, *OF_FOLDS]):
        errors = {data: error(results, seeded(results.preset, data, AS_IT_IS, recipe)) for data in sets}
        if not any(errors.values()):
            continue
        row = [recipe, needs(recipe)]
        for data, text in errors.items():
            row.append(_with_removed(text, _removed(results, data, recipe)))
            if _is_comparable(results.preset, data):
                column = published.REAL_DATA.index(data)
                theirs, removed = (
                    as_published(numbers[recipe][column] if recipe in numbers else None)
                    for numbers in (published.REAL, published.REAL_REMOVED)
                )
                row.append(_with_removed(theirs, removed))
        rows.append(row)
    return [Table("real", caption("Data sets as they are: test error and share removed, in %", results), columns, rows)]


def _is_comparable(preset: Preset, data: str) -> bool:
    """Whether the paper has numbers of this data set, with all of its classes."""
    return data in published.REAL_DATA and title(preset, data) == TITLES[data]


def _with_removed(error_text: str, removed: str) -> str:
    return error_text + (f" ({removed} removed)" if removed else "")


def _cifar_sets(preset: Preset) -> tuple[str, ...]:
    return ("cifar10", "cifar100") if preset == "paper" else ("cifar10",)


CIFAR_UNIFORM = Experiment(
    title="Test error under uniform noise, CIFAR-10 and CIFAR-100",
    claim="CIFAR-10 at 40 %: standard 43.3, AUM 12.5, oracle 9.7; AUM is best of all recipes at every rate",
    cost="14 recipes x 4 rates x 4 seeds of 300 epochs, on two data sets" + LONGER,
    cells=lambda preset: [one for data in _cifar_sets(preset) for one in compared(preset, data, UNIFORM, COMPARED)],
    tables=lambda results: [
        _table(results, f"{data}-uniform", data, UNIFORM, published.UNIFORM[data], published.RATES)
        for data in _cifar_sets(results.preset)
    ],
)
TINY_UNIFORM = Experiment(
    title="Test error under uniform noise, Tiny ImageNet",
    claim="at 40 %: standard 66.3, INCV 57.4, AUM 55.3, oracle 56.5",
    cost="7 recipes x 4 rates x 4 seeds of 300 epochs" + LONGER,
    cells=lambda preset: cells(preset, "tiny-imagenet", UNIFORM if preset == "paper" else [MIDDLE], TINY),
    tables=lambda results: [
        _table(
            results,
            "tiny-imagenet-uniform",
            "tiny-imagenet",
            UNIFORM if results.preset == "paper" else [MIDDLE],
            published.UNIFORM["tiny-imagenet"] if _is_comparable(results.preset, "tiny-imagenet") else {},
            published.RATES,
        )
    ],
    presets=WITHOUT_DESKTOP,
)
CIFAR_ASYMMETRIC = Experiment(
    title="Test error under asymmetric noise, CIFAR-10 and CIFAR-100",
    claim="CIFAR-10: AUM 10.3 at 20 %, best; at 40 % it fails (41.3, L_DMI 16.0, INCV 20.2)",
    cost="11 recipes x 3 rates x 4 seeds of 300 epochs, on two data sets" + LONGER,
    cells=lambda preset: [
        one for data in _cifar_sets(preset) for one in compared(preset, data, ASYMMETRIC, WITHOUT_RATE)
    ],
    tables=lambda results: [
        _table(
            results,
            f"{data}-asymmetric",
            data,
            ASYMMETRIC,
            published.ASYMMETRIC[data],
            published.ASYMMETRIC_RATES,
        )
        for data in _cifar_sets(results.preset)
    ],
)
REAL = Experiment(
    title="Test error and share removed on data sets as they are",
    claim="AUM removes 3 % of CIFAR-10 and 13 % of CIFAR-100 and lowers the error to 7.9 and 31.8",
    cost="5 recipes on 7 data sets and MNIST; large ones are trained for 90 or 180 epochs with ResNet-50" + LONGER,
    cells=_real_cells,
    tables=_real_table,
)
MNIST = Experiment(
    title="Test error of every recipe on MNIST",
    claim="",  # LeNet on MNIST: small enough for every recipe at every rate
    cost="21 recipes x 7 settings x 4 seeds of 40 epochs; aum, INCV and others take about three such trainings",
    cells=lambda preset: sorted(
        cells(preset, "mnist", settings(preset, [*UNIFORM, *ASYMMETRIC]), tuple(RECIPES)),
        key=lambda one: (one.noise, one.rate) != MIDDLE,
    ),
    tables=lambda results: [
        _table(results, "mnist", "mnist", [*UNIFORM, *ASYMMETRIC], {}, ()),
    ],
    presets=WITHOUT_DESKTOP,
)
