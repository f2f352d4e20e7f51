"""An experiment of the paper: its claim, the cells that it runs, and the tables and figures of their results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from undermargin.paper.cell import Cell
from undermargin.paper.store import Store
from undermargin.paper.study import PRESETS, Preset
from undermargin.paper.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIKE = ("preset", "kind", "data", "recipe")  # cells that share these take about as long, with the same study


@dataclass(frozen=True)
class Results:
    """The stored results, for the tables and figures of one preset."""

    store: Store
    preset: Preset
    root: Path  # of the official data sets, for experiments that show images
    rows: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Store, preset: Preset, root: Path) -> "Results":
        """All results that are stored now."""
        return cls(store, preset, root, store.results())

    def numbers(self, cell: Cell) -> dict[str, Any] | None:
        """A cell's numbers, if it was run and did not diverge."""
        row = self.rows.get(cell.key)
        return None if row is None or "diverged" in row["numbers"] else row["numbers"]

    def has_diverged(self, cells: Iterable[Cell]) -> bool:
        """Whether one of these cells diverged."""
        return any("diverged" in self.rows[cell.key]["numbers"] for cell in cells if cell.key in self.rows)

    def source(self, cell: Cell) -> dict[str, str]:
        """The version of the data set that a cell was run on; empty if it was not run."""
        return dict(self.rows.get(cell.key, {}).get("source", {}))

    def seconds(self, cell: Cell) -> float | None:
        """The median time of cells like this one, with any noise and seed; None: none has been run."""
        named, settings = [getattr(cell, name) for name in LIKE], cell.settings()
        like = [
            row
            for row in self.rows.values()
            if [row[name] for name in LIKE] == named and row["study"] == settings["study"]
        ]
        whole = [row for row in like if "resumed" not in row] or like
        return float(np.median([row["seconds"] for row in whole])) if like else None

    def all(self, cells: Iterable[Cell]) -> list[dict[str, Any]]:
        """The numbers of the cells that were run."""
        return [numbers for cell in cells if (numbers := self.numbers(cell)) is not None]

    def arrays(self, cell: Cell) -> Mapping[str, Any] | None:
        """A cell's arrays, if it was run and left any."""
        path = self.store.folder / "arrays" / f"{cell.key}.npz"
        if cell.key not in self.rows or not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            return dict(file)


Figures = dict[str, "Figure"]


@dataclass(frozen=True)
class Experiment:
    """One row of EXPERIMENTS."""

    title: str
    claim: str  # what the paper says; empty if the experiment is not in it
    cost: str  # in trainings
    cells: Callable[[Preset], list[Cell]]
    tables: Callable[[Results], Sequence[Table]] = lambda results: ()  # noqa: ARG005
    figures: Callable[[Results], Figures] = lambda results: {}  # noqa: ARG005
    presets: tuple[Preset, ...] = PRESETS  # in which it can be run


def caption(title: str, results: Results, note: str = "") -> str:
    """A title that names the preset, so that no number is mistaken for the paper's."""
    stands_in = ", digits in place of the data" if results.preset == "smoke" else ""
    return f"{title} (preset {results.preset}{stands_in}{', ' + note if note else ''})"
