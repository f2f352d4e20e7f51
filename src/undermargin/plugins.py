"""Tables of scores, cutoffs and recipes that other packages extend through entry points."""

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from undermargin.errors import UndermarginWarning

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Row = TypeVar("Row")


class Table(Mapping[str, Row]):
    """The built-in rows, followed by those that installed packages register in the entry point group `group`.

    Entry points are loaded when the table is first read, not at import: by then every module of this package that a
    plug-in may import has been initialized.
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
            self._is_complete = True  # set first: a plug-in that reads the table while loading sees the built-in rows
            from importlib.metadata import entry_points

            for entry in sorted(entry_points(group=self.group), key=lambda entry: (entry.name, _owner(entry))):
                self._add(entry)
        return self._rows

    def _add(self, entry: "EntryPoint") -> None:
        if entry.name in self._rows:
            self._warn(entry, "the name is already taken; the first row is kept")
            return
        try:
            row = entry.load()
        except (Exception, SystemExit) as error:  # a broken plug-in must not break the table
            self._warn(entry, f"{entry.value} cannot be loaded ({type(error).__name__}: {error})")
            return
        if isinstance(row, self.kind):
            self._rows[entry.name] = row
        else:
            self._warn(entry, f"{entry.value} is of type {type(row).__name__}, expected {self.kind.__name__}")

    def _warn(self, entry: "EntryPoint", reason: str) -> None:
        warnings.warn(
            f"{entry.name!r} from package {_owner(entry)} was not added to {self.group}: {reason}",
            UndermarginWarning,
            stacklevel=2,
        )


def _owner(entry: "EntryPoint") -> str:
    """The distribution that registered the entry point."""
    return entry.dist.name if entry.dist is not None else "?"
