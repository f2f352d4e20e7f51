"""With and without data augmentation; on a desktop also how many wrong labels are memorized either way."""

from typing import Any

from undermargin.paper import published
from undermargin.paper.cell import Cell
from undermargin.paper.experiment import Experiment, Results, caption
from undermargin.paper.experiments.errors import error
from undermargin.paper.experiments.grid import DEFAULT_VERDICTS, MIDDLE, Setting, cell, seeded
from undermargin.paper.study import Preset, study
from undermargin.paper.tables import Table, percent
from undermargin.paper.tables import published as as_published

ROWS = ("standard", "oracle", "aum", DEFAULT_VERDICTS)
SETTINGS: tuple[Setting, ...] = (MIDDLE, ("asymmetric", 0.4), ("uniform", 0.2))
LONG: dict[str, Any] = {"augmentation": "crops", "epochs": 300}  # the paper's own schedule
MEMORIZED = ("clean", "flipped", "corrected")


def _cells(preset: Preset) -> list[Cell]:
    """With and without, in turns; on a desktop first all that is trained with it, as long as in the paper."""
    if preset == "desktop":
        augmented = [cell(preset, "cifar10", setting, row, **LONG) for setting in SETTINGS for row in ROWS]
        plain = [one for setting in SETTINGS for row in ROWS for one in seeded(preset, "cifar10", setting, row)]
        return [*augmented, *plain]
    bases = [cell(preset, "cifar10", MIDDLE, recipe) for recipe in ("standard", "aum")]
    return [one for base in bases for one in (base, base.varied(augmentation="none"))]


def _tables(results: Results) -> list[Table]:
    if results.preset == "desktop":
        return [_desktop_table(results), _memorized(results)]
    standard, standard_plain, aum, aum_plain = (results.numbers(one) for one in _cells(results.preset))
    rows = [
        [name, *(percent([None if found is None else found["test_error"]]) for found in pair)]
        for name, pair in (("with augmentation", (standard, aum)), ("without", (standard_plain, aum_plain)))
        if any(pair)
    ]
    title = "CIFAR-10, 40 % uniform noise: test error in %, with and without augmentation"
    return [Table("augmentation", caption(title, results), ["", "standard", "aum"], rows)]


def _desktop_table(results: Results) -> Table:
    columns = ["recipe"]
    for noise, rate in SETTINGS:
        columns += [f"{noise} {rate:.0%}", "paper", "without"]
    rows = []
    for row in ROWS:
        texts: list[str] = []
        for setting in SETTINGS:
            texts += [
                error(results, [cell(results.preset, "cifar10", setting, row, **LONG)]),
                _theirs(setting, row),
                error(results, seeded(results.preset, "cifar10", setting, row)),
            ]
        if any(texts[0::3]) or any(texts[2::3]):
            rows.append([row, *texts])
    how = study(results.preset, "cifar10")
    text = (
        f"CIFAR-10: test error in %, {LONG['epochs']} epochs with augmentation beside the paper's, "
        f"and {how.budget.epochs} epochs without"
    )
    return Table("augmentation", caption(text, results, f"{how.model}, {how.num_train} samples"), columns, rows)


def _theirs(setting: Setting, row: str) -> str:
    noise, rate = setting
    numbers = published.UNIFORM["cifar10"] if noise == "uniform" else published.ASYMMETRIC["cifar10"]
    rates = published.RATES if noise == "uniform" else published.ASYMMETRIC_RATES
    return as_published(numbers[row][rates.index(rate)]) if row in numbers else ""


def _memorized(results: Results) -> Table:
    """What the final networks predict for the training samples."""
    schedules: dict[str, dict[str, Any]] = {f"with, {LONG['epochs']} epochs": LONG, "without": {}}
    rows = []
    for noise, rate in SETTINGS:
        for schedule, vary in schedules.items():
            for row in ROWS:
                numbers = results.numbers(cell(results.preset, "cifar10", (noise, rate), row, **vary))
                if numbers and "memorized" in numbers:
                    shares = [percent([numbers["memorized"][name]]) for name in MEMORIZED]
                    rows.append([f"{noise} {rate:.0%}", schedule, row, *shares])
    text = "CIFAR-10: training samples predicted as their label after the last epoch, in %, clean and flipped ones"
    note = "corrected: flipped samples predicted as their true label"
    columns = ["noise", "augmentation", "recipe", *MEMORIZED]
    return Table("memorized", caption(text, results, note), columns, rows)


AUGMENTATION = Experiment(
    "With and without data augmentation",
    "with: from 43 to 12 % error; without: from 51 to 20 %",
    "2 recipes x 2 of 300 epochs",
    _cells,
    _tables,
)
