"""Plain tables: CSV, Parquet, JSON lines; one row per sample, most suspicious first."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from undermargin.export.answers import Answers
from undermargin.storage.csv import write_tables
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json

PIECE = 1 << 18  # rows


def pieces(answers: Answers) -> Iterator[pa.Table]:
    """The table in parts, so that many rows need little memory; at least one part, which may have no rows."""
    for start in range(0, max(len(answers.rows), 1), PIECE):
        yield answers.table(answers.rows[start : start + PIECE])


def write_csv(answers: Answers, path: Path) -> None:
    """For spreadsheets: a text that they would run as a formula gets an apostrophe in front."""
    write_tables(path, pieces(answers))


def write_parquet(answers: Answers, path: Path) -> None:
    """Texts exactly as they are."""
    with replacing(path) as partial:
        parts = pieces(answers)
        first = next(parts)
        with pq.ParquetWriter(partial, first.schema, compression="zstd") as writer:
            for part in (first, *parts):
                writer.write_table(part)


def write_jsonl(answers: Answers, path: Path) -> None:
    """One JSON object per line."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for part in pieces(answers):
            for row in part.to_pylist():
                file.write(to_json(row, indent=None) + "\n")
