"""Test error of every recipe under noise: the paper's tables, and MNIST beside them."""

from collections.abc import Sequence

from undermargin.paper import published
from undermargin.paper.cell import Cell, Noise
from undermargin.paper.experiment import Experiment, Results, caption
from undermargin.paper.published import DIVERGED, Numbers
from undermargin.paper.study import STUDIES, TITLES, Preset, study, title
from undermargin.paper.tables import Table, percent
from undermargin.paper.tables import published as as_published
from undermargin.recipes import RECIPES

Setting = tuple[Noise, float]
UNIFORM: tuple[Setting, ...] = tuple(("uniform", rate) for rate in published.RATES)
ASYMMETRIC: tuple[Setting, ...] = (("asymmetric", 0.2), ("asymmetric", 0.3), ("asymmetric", 0.4))
MIDDLE: Setting = ("uniform", 0.4)
LONGER = "; INCV takes some 3.5 such trainings, aum and co-teaching 2"
# of the paper's tables, in their order
COMPARED = (
    "standard",
    "random_weighting",
    "bootstrap_soft",
    "bootstrap_hard",
    "mentornet",
    "mentornet_dd",
    "co_teaching",
    "d2l",
    "l_dmi",
    "data_parameters",
    "dy_bootstrap",
    "incv",
    "aum",
    "oracle",
)
# what a laptop runs at every setting with every seed; the others at uniform 40 % alone, once
MAIN = ("standard", "oracle", "aum", "random_weighting", "co_teaching", "dy_bootstrap", "incv")
TINY = ("standard", "random_weighting", "data_parameters", "dy_bootstrap", "incv", "aum", "oracle")
# the paper leaves out whoever must be told the noise rate
WITHOUT_RATE = tuple(name for name in COMPARED if name not in ("co_teaching", "mentornet", "mentornet_dd"))


def cells(preset: Preset, data: str, settings: Sequence[Setting], recipes: Sequence[str]) -> list[Cell]:
    """One for every seed, setting and recipe; all settings of the first seed come first."""
    return [
        Cell("fit", preset, data, noise, rate, recipe, seed)
        for seed in study(preset, data).seeds
        for noise, rate in settings
        for recipe in recipes
    ]


def _settings(preset: Preset, settings: Sequence[Setting]) -> Sequence[Setting]:
    """A smoke test runs every recipe, but at one rate."""
    return settings[1:2] if preset == "smoke" else settings


def _main_first(preset: Preset, data: str, settings: Sequence[Setting], recipes: Sequence[str]) -> list[Cell]:
    """On a laptop the main recipes at every setting; the others at the middle one, with the first seed alone."""
    if preset != "laptop":
        return cells(preset, data, _settings(preset, settings), recipes)
    is_middle = {cell: (cell.noise, cell.rate) == MIDDLE for cell in cells(preset, data, settings, tuple(RECIPES))}
    chosen = [cell for cell in is_middle if cell.recipe in MAIN or (is_middle[cell] and cell.seed == 0)]
    return sorted(chosen, key=lambda cell: (cell.seed, not is_middle[cell]))


def _table(
    results: Results, name: str, data: str, settings: Sequence[Setting], theirs: Numbers, rates: Sequence[float]
) -> Table:
    """Ours beside the paper's; a recipe of which nothing was run has no row."""
    columns = ["recipe", "needs"]
    for noise, rate in settings:
        columns += [f"{noise} {rate:.0%}", *([f"paper {rate:.0%}"] if rate in rates and theirs else [])]
    rows = []
    for recipe in dict.fromkeys([*COMPARED, *RECIPES]):
        texts = [_error(results, data, setting, recipe) for setting in settings]
        if recipe not in RECIPES or not any(texts):
            continue
        row = [recipe, ", ".join(RECIPES[recipe].needs)]
        for (_, rate), text in zip(settings, texts, strict=True):
            number = theirs[recipe][rates.index(rate)] if recipe in theirs and rate in rates else None
            row += [text, *([as_published(number)] if rate in rates and theirs else [])]
        rows.append(row)
    how = study(results.preset, data)
    note = f"{how.model}, {how.num_train or 'all'} samples, {how.budget.epochs} epochs; final-epoch test error in %"
    if how.image_size is not None:
        note = f"{how.image_size} pixels a side, {note}"
    if how.num_test is not None:
        note += f" of {how.num_test} test samples"
    if any(row[0] == "l_dmi" for row in rows):
        note += "; of l_dmi, the epoch that is best on held-out noisy labels, as its authors choose"
    if results.preset == "paper":
        note += "; every recipe by the paper's own schedule, not by its authors'"
    if theirs:  # neither is said in the paper
        note += "; its Bootstrap may be soft or hard, with either sign of the entropy, its MentorNet either kind"
    return Table(name, caption(f"{title(results.preset, data)}: test error", results, note), columns, rows)


def _error(results: Results, data: str, setting: Setting, recipe: str) -> str:
    same = cells(results.preset, data, [setting], [recipe])
    if results.has_diverged(same):
        return DIVERGED
    return percent([numbers["test_error"] for numbers in results.all(same)], len(same))


def _removed(results: Results, data: str, recipe: str) -> str:
    found = results.all(cells(results.preset, data, [("none", 0.0)], [recipe]))
    return percent([numbers["verdicts"]["flagged_share"] for numbers in found if "verdicts" in numbers])


def _real_cells(preset: Preset) -> list[Cell]:
    return [cell for data in _real_sets(preset) for cell in cells(preset, data, [("none", 0.0)], tuple(published.REAL))]


def _real_sets(preset: Preset) -> list[str]:
    return [data for data in (*published.REAL_DATA, "mnist") if data in STUDIES[preset]]


def _real_table(results: Results) -> list[Table]:
    sets = _real_sets(results.preset)
    columns = ["recipe", "needs"]
    for data in sets:
        columns += [title(results.preset, data), *(["paper"] if _is_comparable(results.preset, data) else [])]
    rows = []
    for recipe in published.REAL:
        errors = {data: _error(results, data, ("none", 0.0), recipe) for data in sets}
        if not any(errors.values()):
            continue
        row = [recipe, ", ".join(RECIPES[recipe].needs)]
        for data, error in errors.items():
            row.append(_with_removed(error, _removed(results, data, recipe)))
            if _is_comparable(results.preset, data):
                column = published.REAL_DATA.index(data)
                removed = published.REAL_REMOVED[recipe][column] if recipe in published.REAL_REMOVED else None
                row.append(_with_removed(as_published(published.REAL[recipe][column]), as_published(removed)))
        rows.append(row)
    return [Table("real", caption("Data sets as they are: test error and share removed, in %", results), columns, rows)]


def _is_comparable(preset: Preset, data: str) -> bool:
    """Whether the paper has numbers of this data set, of all of its classes."""
    return data in published.REAL_DATA and title(preset, data) == TITLES[data]


def _with_removed(error: str, removed: str) -> str:
    return error + (f" ({removed} removed)" if removed else "")


def _cifar_sets(preset: Preset) -> tuple[str, ...]:
    return ("cifar10", "cifar100") if preset == "paper" else ("cifar10",)


CIFAR_UNIFORM = Experiment(
    title="Test error under uniform noise, CIFAR-10 and CIFAR-100",
    claim="CIFAR-10 at 40 %: standard 43.3, AUM 12.5, oracle 9.7; AUM is best of all recipes at every rate",
    cost="14 recipes x 4 rates x 4 seeds of 300 epochs, on two data sets" + LONGER,
    cells=lambda preset: [
        cell for data in _cifar_sets(preset) for cell in _main_first(preset, data, UNIFORM, COMPARED)
    ],
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
)
CIFAR_ASYMMETRIC = Experiment(
    title="Test error under asymmetric noise, CIFAR-10 and CIFAR-100",
    claim="CIFAR-10: AUM 10.3 at 20 %, best; at 40 % it fails (41.3, L_DMI 16.0, INCV 20.2)",
    cost="11 recipes x 3 rates x 4 seeds of 300 epochs, on two data sets" + LONGER,
    cells=lambda preset: [
        cell for data in _cifar_sets(preset) for cell in _main_first(preset, data, ASYMMETRIC, WITHOUT_RATE)
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
    cost="21 recipes x 7 settings x 4 seeds of 40 epochs; aum, INCV and others take some three such trainings",
    cells=lambda preset: sorted(
        cells(preset, "mnist", _settings(preset, [*UNIFORM, *ASYMMETRIC]), tuple(RECIPES)),
        key=lambda cell: (cell.noise, cell.rate) != MIDDLE,
    ),
    tables=lambda results: [
        _table(results, "mnist", "mnist", [*UNIFORM, *ASYMMETRIC], {}, ()),
    ],
)
