"""Verdicts as a table: columns, Parquet and CSV. Written in pieces, so ten million rows need little memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.verdicts import NAMES, Verdicts

Rows = npt.NDArray[np.int64]

PIECE = 1 << 20  # rows
REQUIRED = ("index", "id", "label", "score", "verdict", "suggested_label")


def to_arrow(verdicts: Verdicts, rows: Rows) -> pa.Table:
    """The columns of verdicts.parquet for these samples, in this order."""
    index = pa.array(rows)
    ids = index.cast(pa.string()) if verdicts.ids is None else pa.array([str(verdicts.ids[row]) for row in rows])
    columns: dict[str, Any] = {
        "index": index,
        "id": ids,
        "label": _names(verdicts, verdicts.labels, rows),
        "score": verdicts.scores[rows].astype(np.float64),
        "verdict": pa.DictionaryArray.from_arrays(verdicts.codes[rows], NAMES).cast(pa.string()),
        "suggested_label": _names(verdicts, verdicts.suggested_labels, rows),
    }
    if verdicts.suggestion_confidence is not None:
        columns["suggestion_confidence"] = verdicts.suggestion_confidence[rows].astype(np.float64)
    columns["score_minus_cutoff"] = verdicts.excess[rows].astype(np.float64)
    columns["judged_by"] = verdicts.judged_by[rows]
    for fold, scores in enumerate(verdicts.fold_scores):
        columns[f"score_fold{fold}"] = scores[rows].astype(np.float32)
    return pa.table(columns)


def _names(verdicts: Verdicts, labels: Rows | None, rows: Rows) -> pa.Array:
    """Class names of these samples; null where there is none."""
    if labels is None:
        return pa.nulls(len(rows), pa.string())
    chosen = pa.array(labels[rows], mask=labels[rows] < 0)
    if verdicts.class_names is None:
        return chosen.cast(pa.string())
    return pc.take(pa.array(verdicts.class_names, pa.string()), chosen)


def write(verdicts: Verdicts, path: Path) -> None:
    """Write .parquet (everything) or .csv (the rows); the file appears whole or not at all."""
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"verdicts are saved as .parquet or .csv, not as {path.name!r}")
    partial = path.with_name(path.name + ".part")
    pieces = _pieces(verdicts)
    first = next(pieces)
    if path.suffix == ".parquet":
        about = {"about": verdicts.about, "class_names": verdicts.class_names, "has_ids": verdicts.ids is not None}
        schema = first.schema.with_metadata({"undermargin": json.dumps(about)})
        writer = pq.ParquetWriter(partial, schema, compression="zstd")
    else:
        writer = csv.CSVWriter(partial, first.schema)
    with writer:
        writer.write_table(first)
        for piece in pieces:
            writer.write_table(piece)
    partial.replace(path)


def _pieces(verdicts: Verdicts) -> Iterator[pa.Table]:
    order = verdicts.order
    for start in range(0, max(len(order), 1), PIECE):
        yield to_arrow(verdicts, order[start : start + PIECE])


def read(path: Path) -> Verdicts:
    """Read what `write` wrote, back into the data set's order."""
    try:
        if path.suffix == ".csv":
            about: dict[str, Any] = {"about": {}, "class_names": None, "has_ids": True}
            text = dict.fromkeys(("id", "label", "verdict", "suggested_label"), pa.string())
            options = csv.ConvertOptions(column_types=text, strings_can_be_null=True, quoted_strings_can_be_null=False)
            table = csv.read_csv(path, convert_options=options)
        else:
            about = json.loads((pq.read_schema(path).metadata or {})[b"undermargin"])
            names = pq.read_schema(path).names
            table = pq.read_table(path, columns=[name for name in names if name != "id" or about["has_ids"]])
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{path} holds no verdicts that undermargin wrote: {error}") from None
    missing = [name for name in REQUIRED if name not in table.column_names and (name != "id" or about["has_ids"])]
    if missing:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}; there are {', '.join(table.column_names)}")
    return _from_arrow(table, about)


def _from_arrow(table: pa.Table, about: dict[str, Any]) -> Verdicts:
    order = table["index"].to_numpy()
    if not np.array_equal(np.sort(order), np.arange(len(order))):
        raise InputError(f"the index column is not 0..{len(order) - 1}, each once: rows are missing or repeated")

    def placed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        result = np.empty_like(values)
        result[order] = values
        return result

    def column(name: str) -> npt.NDArray[Any] | None:
        return placed(table[name].to_numpy()) if name in table.column_names else None

    def labels(name: str, class_names: list[str] | None) -> Rows | None:
        if table[name].null_count == len(table):
            return None
        if class_names is None:
            numbers = table[name].cast(pa.int64())
        else:
            numbers = pc.index_in(table[name], pa.array(class_names, pa.string())).cast(pa.int64())
        return placed(pc.fill_null(numbers, -1).to_numpy())

    class_names = about["class_names"]
    if class_names is None and not _are_numbers(table["label"]):
        class_names = sorted({*table["label"].to_pylist(), *table["suggested_label"].drop_null().to_pylist()})
    codes = pc.index_in(table["verdict"], pa.array(NAMES)).to_numpy()
    folds = sorted(name for name in table.column_names if name.startswith("score_fold"))
    return Verdicts(
        codes=placed(codes).astype(np.int8),
        scores=placed(table["score"].to_numpy()),
        excess=placed(table["score_minus_cutoff"].to_numpy()),
        judged_by=placed(table["judged_by"].to_numpy()).astype(np.int8),
        fold_scores=[placed(table[name].to_numpy()) for name in folds],
        labels=labels("label", class_names),
        ids=placed(table["id"].to_numpy(zero_copy_only=False)).tolist() if about["has_ids"] else None,
        class_names=class_names,
        suggested_labels=labels("suggested_label", class_names),
        suggestion_confidence=column("suggestion_confidence"),
        about=about["about"],
    )


def _are_numbers(names: pa.ChunkedArray) -> bool:
    try:
        names.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True
