"""Verdicts as a table: columns, Parquet and CSV. Written in pieces, so ten million rows need little memory."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.storage.csv import guard_table, unguard_column
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json
from undermargin.verdicts.record import NAMES, Verdicts

Rows = npt.NDArray[np.int64]

PIECE = 1 << 20  # rows
MANY_CLASSES = 1000  # numbers up to this are taken for classes even in a small table; postal codes are not
FOLD = "score_fold"  # and its number: the column of one run's scores
ALTERNATIVE, SHARE = "alternative_", "p_alternative_"  # and a number from 1: other classes that the label may be
REQUIRED = ("index", "id", "label", "score", "verdict", "suggested_label", "score_minus_cutoff", "judged_by")


def to_arrow(verdicts: Verdicts, rows: Rows) -> pa.Table:
    """The columns of verdicts.parquet for these samples, in this order."""
    index = pa.array(rows)
    ids = (
        index.cast(pa.string())
        if verdicts.ids is None
        else pa.array([str(verdicts.ids[row]) for row in rows], pa.string())
    )
    columns: dict[str, Any] = {
        "index": index,
        "id": ids,
        "label": _names(verdicts, verdicts.labels, rows),
        "score": verdicts.scores[rows].astype(np.float64),
        "verdict": pc.take(pa.array(NAMES), pa.array(verdicts.codes[rows])),
        "suggested_label": _names(verdicts, verdicts.suggested_labels, rows),
    }
    if verdicts.suggestion_confidence is not None:
        columns["suggestion_confidence"] = verdicts.suggestion_confidence[rows].astype(np.float64)
    if verdicts.probabilities is not None:
        columns["p_mislabeled"] = verdicts.probabilities[rows].astype(np.float64)
    columns |= _alternatives(verdicts, rows)
    columns["score_minus_cutoff"] = verdicts.excess[rows].astype(np.float64)
    columns["judged_by"] = verdicts.judged_by[rows]
    for fold, scores in enumerate(verdicts.fold_scores):
        columns[f"{FOLD}{fold}"] = scores[rows].astype(np.float32)
    return pa.table(columns)


def _alternatives(verdicts: Verdicts, rows: Rows) -> dict[str, Any]:
    """The three likeliest other classes with their probabilities, two columns each."""
    classes, shares = verdicts.alternatives, verdicts.alternative_shares
    if classes is None or shares is None:
        return {}
    columns: dict[str, Any] = {}
    for place in range(classes.shape[1]):
        columns[f"{ALTERNATIVE}{place + 1}"] = _names(verdicts, classes[:, place], rows)
        columns[f"{SHARE}{place + 1}"] = shares[rows, place].astype(np.float64)
    return columns


def _names(verdicts: Verdicts, labels: Rows | None, rows: Rows) -> pa.Array:
    """Class names of these samples; null where there is none."""
    if labels is None:
        return pa.nulls(len(rows), pa.string())
    chosen = pa.array(labels[rows], mask=labels[rows] < 0)
    if verdicts.class_names is None:
        return chosen.cast(pa.string())
    return pc.take(pa.array(verdicts.class_names, pa.string()), chosen)


def write(verdicts: Verdicts, path: Path) -> None:
    """Write .parquet (everything) or .csv (the rows, safe for spreadsheets); the file appears whole or not at all."""
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"verdicts are saved as .parquet or .csv, not as {path.name!r}")
    is_csv = path.suffix == ".csv"
    pieces = map(guard_table, _pieces(verdicts)) if is_csv else _pieces(verdicts)
    first = next(pieces)
    about = {"about": verdicts.about, "class_names": verdicts.class_names, "has_ids": verdicts.ids is not None}
    schema = first.schema.with_metadata({"undermargin": to_json(about, indent=None)})
    with replacing(path) as partial:
        writer = csv.CSVWriter(partial, schema) if is_csv else pq.ParquetWriter(partial, schema, compression="zstd")
        with writer:
            writer.write_table(first)
            for piece in pieces:
                writer.write_table(piece)


def _pieces(verdicts: Verdicts) -> Iterator[pa.Table]:
    order = verdicts.order
    for start in range(0, max(len(order), 1), PIECE):
        yield to_arrow(verdicts, order[start : start + PIECE])


def read(path: Path) -> Verdicts:
    """Read what `write` wrote, back into the data set's order; one column at a time."""
    try:
        columns: _CsvColumns | _ParquetColumns = _CsvColumns(path) if path.suffix == ".csv" else _ParquetColumns(path)
    except (OSError, ValueError, KeyError) as error:  # Arrow's own are a ValueError, too
        raise InputError(f"{path} holds no verdicts that undermargin wrote: {error}") from None
    missing = [name for name in REQUIRED if name not in columns.names]
    if missing:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}; there are {', '.join(columns.names)}")
    try:
        return _verdicts(columns)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} holds something else than undermargin wrote: {error}") from None


class _CsvColumns:
    """The rows of a CSV file, and nothing else."""

    def __init__(self, path: Path) -> None:
        named = ("id", "label", "verdict", "suggested_label", *(f"{ALTERNATIVE}{place}" for place in range(1, 10)))
        text = dict.fromkeys(named, pa.string())
        options = csv.ConvertOptions(
            column_types=text,
            null_values=[""],  # a class may be called NA, and editors drop our quotes
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        lines = csv.ParseOptions(newlines_in_values=True)  # an id may be a whole text
        self.table = csv.read_csv(path, convert_options=options, parse_options=lines)
        self.names = self.table.column_names
        self.about: dict[str, Any] = {"about": {}, "class_names": None, "has_ids": True}

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        values = self.table[name]
        return unguard_column(values) if pa.types.is_string(values.type) else values


class _ParquetColumns:
    """The columns of a Parquet file, each read when asked for, and what its metadata says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        schema = pq.read_schema(path)
        self.names = schema.names
        self.about: dict[str, Any] = json.loads((schema.metadata or {})[b"undermargin"])

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return pq.read_table(self.path, columns=[name], read_dictionary=[name])[name]


def _verdicts(columns: _CsvColumns | _ParquetColumns) -> Verdicts:
    order = columns["index"].to_numpy()
    if not np.array_equal(np.sort(order), np.arange(len(order))):
        raise InputError(f"the index column is not 0..{len(order) - 1}, each once: rows are missing or repeated")

    def placed(values: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        result = np.empty(len(values), dtype)
        result[order] = values
        return result

    def numbers(name: str, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        return placed(columns[name].to_numpy(), dtype)

    def labels(name: str, class_names: list[str] | None) -> Rows | None:
        names = columns[name]
        if names.null_count == len(names):
            return None
        if name == "label" and names.null_count:
            raise InputError(f"{names.null_count} of {len(names)} samples have no label; expected all or none")
        names = names.cast(pa.string()) if class_names is None else names
        found = names.cast(pa.int64()) if class_names is None else pc.index_in(names, pa.array(class_names))
        return placed(pc.fill_null(found, -1).to_numpy(), np.int64)

    verdicts = columns["verdict"]
    codes = pc.index_in(verdicts, pa.array(NAMES))
    if codes.null_count:
        unknown = verdicts.filter(codes.is_null())[0].as_py()
        raise InputError(f"{codes.null_count} verdicts are none, first {unknown!r}; expected {', '.join(NAMES)}")
    about = columns.about
    class_names = about["class_names"] or _class_names(columns)
    num_folds = sum(name.startswith(FOLD) for name in columns.names)
    has_confidence = "suggestion_confidence" in columns.names
    return Verdicts(
        codes=placed(codes.to_numpy(), np.int8),
        scores=numbers("score"),
        excess=numbers("score_minus_cutoff"),
        judged_by=numbers("judged_by", np.int16),
        fold_scores=[numbers(f"{FOLD}{fold}", np.float32) for fold in range(num_folds)],
        labels=labels("label", class_names),
        ids=placed(columns["id"].to_numpy(), object).tolist() if about["has_ids"] else None,
        class_names=class_names,
        suggested_labels=labels("suggested_label", class_names),
        suggestion_confidence=numbers("suggestion_confidence") if has_confidence else None,
        probabilities=numbers("p_mislabeled") if "p_mislabeled" in columns.names else None,
        **_read_alternatives(columns, lambda name: labels(name, class_names), numbers),
        about=about["about"],
    )


def _read_alternatives(
    columns: "_CsvColumns | _ParquetColumns", labels: Callable[[str], Rows | None], numbers: Callable[[str], Any]
) -> dict[str, Any]:
    size = sum(name.startswith(ALTERNATIVE) for name in columns.names)
    if not size:
        return {}
    read = [labels(f"{ALTERNATIVE}{place + 1}") for place in range(size)]
    unknown = np.full(len(numbers("judged_by")), -1)
    return {
        "alternatives": np.stack([unknown if one is None else one for one in read], 1),
        "alternative_shares": np.stack([numbers(f"{SHARE}{place + 1}") for place in range(size)], 1),
    }


def _class_names(columns: _CsvColumns | _ParquetColumns) -> list[str] | None:
    """Names in alphabetical order; None where all labels are numbers, which stand for themselves."""
    labels = columns["label"]
    names = {*labels.unique().to_pylist(), *columns["suggested_label"].unique().to_pylist()} - {None}
    return None if all(_is_number(name, max(len(labels), MANY_CLASSES)) for name in names) else sorted(names)


def _is_number(name: str, most: int) -> bool:
    """Whether the name of a class is its number, written as we write it, and none that only looks like one."""
    return name.isascii() and name.isdecimal() and len(name) < 19 and str(int(name)) == name and int(name) < most
