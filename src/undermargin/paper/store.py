"""Results: one JSON line per finished cell, with everything it depends on."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undermargin.errors import InputError
from undermargin.paper.cell import Cell
from undermargin.storage.files import append_line
from undermargin.storage.json import to_json


@dataclass(frozen=True)
class Store:
    """A folder with results.jsonl. A line that is incomplete because the process was killed is ignored."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file with all results."""
        return self.folder / "results.jsonl"

    def work(self, cell: Cell, code: str) -> Path:
        """Where a running cell keeps its checkpoints; cells with the same folds share them.

        Every commit has its own: no training is begun by one and finished by another.
        """
        return self.folder / "work" / "-".join(filter(None, (cell.folds_key, code)))

    def records(self, cell: Cell) -> Path:
        """Where the logits of finished trainings are kept that cells with the same folds share, of any commit."""
        return self.folder / "work" / "records" / cell.folds_key

    @property
    def photos(self) -> Path:
        """Where photos that do not fit into memory are kept as pixels, for all cells that read them."""
        return self.folder / "work" / "photos"

    def results(self) -> dict[str, dict[str, Any]]:
        """The stored lines of all finished cells, by key."""
        if not self.path.is_file():
            return {}
        found = {}
        lines = self.path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                found[row["key"]] = row
            except (ValueError, KeyError):
                if line and number < len(lines) and not line.startswith('{"key"'):
                    raise InputError(f"line {number} of {self.path} is not a result; remove it") from None
                # otherwise an interrupted write: the cell is run again
        return found

    def add(self, cell: Cell, numbers: dict[str, Any], about: dict[str, Any]) -> None:
        """Append the result of a finished cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.path.is_file() and not self.path.read_bytes().endswith(b"\n"):
            with self.path.open("a") as file:
                file.write("\n")  # after an incomplete line
        row = {"key": cell.key, **cell.settings(), "numbers": numbers, **about}
        append_line(self.path, json.loads(to_json(row)))
