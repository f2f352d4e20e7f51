"""Scores, cutoffs and recipes of other people's packages, found by their entry points."""

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from undermargin.errors import UndermarginWarning

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Row = TypeVar("Row")


class Table(Mapping[str, Row]):
    """Our rows, and behind them those that installed packages name in the entry point group `group`.

    Theirs are loaded when the table is first read, not before: then every module of ours that they may import is whole.
    """

    def __init__(self, group: str, kind: type[Row], ours: Mapping[str, Row]) -> None:
        self.group = group
        self.kind = kind
        self._rows = dict(ours)
        self._is_complete = False

    def __getitem__(self, name: str) -> Row:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Row]:
        if not self._is_complete:
            self._is_complete = True  # first: a package that reads the table while it is loaded finds our rows
            from importlib.metadata import entry_points

            for entry in sorted(entry_points(group=self.group), key=lambda entry: (entry.name, _owner(entry))):
                self._add(entry)
        return self._rows

    def _add(self, entry: "EntryPoint") -> None:
        if entry.name in self._rows:
            self._warn(entry, "the name is taken; the row that was there first stays")
            return
        try:
            row = entry.load()
        except (Exception, SystemExit) as error:  # whatever other people's code may do, ours goes on
            self._warn(entry, f"{entry.value} cannot be loaded ({type(error).__name__}: {error})")
            return
        if isinstance(row, self.kind):
            self._rows[entry.name] = row
        else:
            self._warn(entry, f"{entry.value} is of type {type(row).__name__}, expected {self.kind.__name__}")

    def _warn(self, entry: "EntryPoint", reason: str) -> None:
        warnings.warn(
            f"{entry.name!r} of the package {_owner(entry)} is not among {self.group}: {reason}",
            UndermarginWarning,
            stacklevel=2,
        )


def _owner(entry: "EntryPoint") -> str:
    """Which distribution named it."""
    return entry.dist.name if entry.dist is not None else "?"
