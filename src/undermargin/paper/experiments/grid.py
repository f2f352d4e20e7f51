"""Which cells a table of test errors consists of: rows, settings and seeds, by preset."""

from collections.abc import Sequence
from typing import Any

from undermargin.paper import published
from undermargin.paper.cell import Cell, Noise
from undermargin.paper.shared import DEFAULT, IDENTIFIERS
from undermargin.paper.study import Preset, study
from undermargin.recipes import RECIPES

WITHOUT_DESKTOP: tuple[Preset, ...] = ("paper", "laptop", "smoke")
Setting = tuple[Noise, float]
UNIFORM: tuple[Setting, ...] = tuple(("uniform", rate) for rate in published.RATES)
ASYMMETRIC: tuple[Setting, ...] = (("asymmetric", 0.2), ("asymmetric", 0.3), ("asymmetric", 0.4))
AS_IT_IS: Setting = ("none", 0.0)
MIDDLE: Setting = ("uniform", 0.4)
# the paper's tables, in their order
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
# run on a laptop at every setting with every seed; the others at uniform 40 % alone, once
MAIN = ("standard", "oracle", "aum", "random_weighting", "co_teaching", "dy_bootstrap", "incv")
DEFAULT_VERDICTS = f"aum, {DEFAULT}"
CLEANED = (DEFAULT_VERDICTS, "bmm", "gmm")  # trainings without what an identifier flags; the paper's AUM is a recipe
DESKTOP = ("standard", "oracle", "aum", *CLEANED, "co_teaching")  # in the order in which they are run


def cell(preset: Preset, data: str, setting: Setting, row: str, seed: int = 0, **vary: Any) -> Cell:
    """A row's cell: a recipe, or a training without what an identifier flags."""
    if row in RECIPES:
        made = Cell("fit", preset, data, *setting, row, seed)
    else:
        score, cutoff = IDENTIFIERS[row]
        made = Cell("cleaned", preset, data, *setting, "aum", seed).varied(score=score, cutoff=cutoff)
    return made.varied(**vary) if vary else made


def row_of(one: Cell) -> str:
    """The name of the row that a cell belongs to: `cell` the other way round.

    >>> row_of(cell("desktop", "cifar10", MIDDLE, "bmm")), row_of(cell("desktop", "cifar10", MIDDLE, "oracle"))
    ('bmm', 'oracle')
    """
    if one.kind != "cleaned":
        return one.recipe
    identifier = (one.option("score"), one.option("cutoff"))
    return next((name for name, known in IDENTIFIERS.items() if known == identifier), one.recipe)


def seeds(preset: Preset, data: str, setting: Setting) -> range:
    """The study's seeds; on a desktop one, and two at 40 % noise."""
    if preset == "desktop":
        return range(2 if setting[1] == MIDDLE[1] else 1)
    return study(preset, data).seeds


def seeded(preset: Preset, data: str, setting: Setting, row: str, **vary: Any) -> list[Cell]:
    """The cells of one entry of a table: one per seed."""
    return [cell(preset, data, setting, row, seed, **vary) for seed in seeds(preset, data, setting)]


def cells(preset: Preset, data: str, settings: Sequence[Setting], rows: Sequence[str]) -> list[Cell]:
    """One for every seed, setting and row; all settings of the first seed come first."""
    most = max(len(seeds(preset, data, setting)) for setting in settings)
    return [
        cell(preset, data, setting, row, seed)
        for seed in range(most)
        for setting in settings
        if seed in seeds(preset, data, setting)
        for row in rows
    ]


def settings(preset: Preset, all_settings: Sequence[Setting]) -> Sequence[Setting]:
    """Those of a preset: a smoke test runs every recipe, but at one rate; a desktop leaves out 30 %."""
    if preset == "smoke":
        return all_settings[1:2]
    return [one for one in all_settings if one[1] != 0.3] if preset == "desktop" else all_settings


def compared(preset: Preset, data: str, all_settings: Sequence[Setting], rows: Sequence[str]) -> list[Cell]:
    """The cells of a table of the paper, those of 40 % noise first: fewer than `rows` where time is short.

    A laptop runs the main recipes at every setting, and the others at 40 % uniform noise with the first seed.
    """
    rows = {"desktop": DESKTOP, "laptop": tuple(RECIPES), "smoke": (*rows, *CLEANED)}.get(preset, rows)
    chosen = cells(preset, data, settings(preset, all_settings), rows)
    if preset == "laptop":
        is_once = {one: (one.noise, one.rate, one.seed) == (*MIDDLE, 0) for one in chosen}
        chosen = [one for one in chosen if one.recipe in MAIN or is_once[one]]
    return sorted(chosen, key=lambda one: (one.seed, one.rate != MIDDLE[1]))
