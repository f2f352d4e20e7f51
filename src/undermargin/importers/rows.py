"""Parquet and JSON lines: one row per epoch and sample, in order of the epochs.

Columns: `epoch`; `index` (0..n-1) or `id`; `logits` or `probabilities`, a list with a number per class; and `label`,
where labels are not passed. The file is read twice: once for the samples, once for the logits.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.importers.recording import Piece, Recording, as_labels, one_line

ROWS = 1 << 13  # in memory at a time

Columns = dict[str, Sequence[Any]]
Table = Callable[[Sequence[str]], Iterator[Columns]]  # the named columns, some rows at a time


def read_parquet(path: Path, labels: Any) -> Recording:
    """A Parquet file of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def table(names: Sequence[str]) -> Iterator[Columns]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS, columns=list(names)):
                    yield {name: _values(path, name, batch.column(name)) for name in batch.schema.names}
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} is not a complete Parquet file: {one_line(error)}") from None

    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a complete Parquet file: {one_line(error)}") from None
    return recording(path, names, table, labels)


def _values(path: Path, name: str, column: Any) -> Any:
    """A column as NumPy has it; of lists, a matrix, without a Python object per number."""
    if column.null_count:
        raise InputError(f"{path}: {column.null_count} values of {name!r} are missing")
    if not hasattr(column, "values"):
        return column.to_pylist()
    lengths = set(column.value_lengths().to_pylist())
    if len(lengths) != 1:
        raise InputError(
            f"{path}: {name} have between {min(lengths)} and {max(lengths)} numbers; expected one per class"
        )
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def read_json_lines(path: Path, labels: Any) -> Recording:
    """A file with one JSON object per line."""

    def table(names: Sequence[str]) -> Iterator[Columns]:
        for rows in _chunks(json_lines(path)):
            yield {name: [field(path, number, row, name) for number, row in rows] for name in names}

    first = next(json_lines(path), None)
    if first is None:
        raise InputError(f"{path} is empty")
    return recording(path, list(first[1]), table, labels)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects; blank lines are passed over."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise InputError(f"{path}, line {number}: a {type(row).__name__}, expected an object")
                    yield number, row
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} could not be read: {one_line(error)}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {number} is not JSON: {error.msg}; is the file complete?") from None


def field(path: Path, number: int, row: dict[str, Any], name: str) -> Any:
    """A value of one line."""
    if name not in row:
        raise InputError(f"{path}, line {number} has no {name!r}, only {', '.join(row)}")
    return row[name]


def recording(path: Path, names: Sequence[str], table: Table, labels: Any) -> Recording:
    """Rows of any table as a recording, after a first pass over its samples."""
    if "epoch" not in names:
        raise InputError(f"{path} has no column 'epoch', only {', '.join(names)}")
    outputs = _one_of(path, names, ("logits", "probabilities"))
    key = _one_of(path, names, ("index", "id"))
    samples = Samples(path, is_named=key == "id")
    has_labels = "label" in names and labels is None
    for columns in table([key, "label"] if has_labels else [key]):
        samples.add(columns[key], columns.get("label"))
    known = samples.labels() if labels is None else as_labels(labels, path, ids=samples.ids)
    count = samples.count if known is None else len(known)
    pieces = _pieces(path, table, key, outputs, samples)
    return Recording(path, count, known, pieces, samples.ids, True if outputs == "probabilities" else None)


class Samples:
    """Positions and labels of the samples that a file names or numbers."""

    def __init__(self, path: Path, *, is_named: bool) -> None:
        self.path, self.is_named = path, is_named
        self.count = 0
        self._positions: dict[Any, int] = {}  # of ids, in the order in which they first occur
        self._labels: dict[int, Any] = {}

    @property
    def ids(self) -> list[Any] | None:
        """The names, by position; None: samples are numbered."""
        return list(self._positions) if self.is_named else None

    def add(self, keys: Sequence[Any], labels: Sequence[Any] | None) -> None:
        """Take note of some samples, with their labels where the file has them."""
        if self.is_named:
            for key in keys:
                self._positions.setdefault(key, len(self._positions))
        positions = self.at(keys)
        self.count = max(self.count, int(positions.max(initial=-1)) + 1)
        for position, label in zip(positions.tolist(), labels or (), strict=False):
            if self._labels.setdefault(position, label) != label:
                raise InputError(f"{self.path}: sample {position} has label {self._labels[position]} and label {label}")

    def at(self, keys: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Positions of these samples."""
        if self.is_named:
            return np.array([self._positions[key] for key in keys], np.int64)
        positions = np.asarray(keys)
        if positions.dtype.kind not in "iu" or positions.min() < 0:
            raise InputError(f"{self.path}: index holds {keys[0]!r}, expected whole numbers 0..n-1; call names 'id'")
        return positions.astype(np.int64)

    def labels(self) -> npt.NDArray[np.int64] | None:
        """Those that the file has, by position; None: it has none."""
        if not self._labels:
            return None
        if len(self._labels) < self.count:
            missing = next(position for position in range(self.count) if position not in self._labels)
            raise InputError(f"{self.path}: index {missing} of 0..{self.count - 1} never occurs; pass labels= for all")
        return as_labels([self._labels[position] for position in range(self.count)], self.path)


def _pieces(path: Path, table: Table, key: str, outputs: str, samples: Samples) -> Iterator[Piece]:
    for columns in table(["epoch", key, outputs]):
        try:
            epochs = np.asarray(columns["epoch"], np.int64)
            logits = np.asarray(columns[outputs], np.float32)
        except (TypeError, ValueError):
            raise InputError(f"{path}: {outputs} are not lists of equally many numbers, one per class") from None
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise InputError(f"{path}: {outputs} are not lists with a number for each of two or more classes")
        indices = samples.at(columns[key])
        starts = np.flatnonzero(np.diff(epochs)) + 1  # a chunk of rows may end one epoch and begin the next
        for rows in np.split(np.arange(len(epochs)), starts):
            yield Piece(int(epochs[rows[0]]), logits[rows], indices[rows])


def _one_of(path: Path, names: Sequence[str], wanted: Sequence[str]) -> str:
    for name in wanted:
        if name in names:
            return name
    raise InputError(f"{path} has columns {', '.join(names)}; expected one called {' or '.join(wanted)}")


def _chunks(rows: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    while chunk := list(islice(rows, ROWS)):
        yield chunk
