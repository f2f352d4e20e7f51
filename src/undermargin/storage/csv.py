"""CSV files that are safe to open in a spreadsheet, and are read back as they were.

A spreadsheet runs a cell that starts with = + - @ a tab or a carriage return as a formula. Such a text gets an
apostrophe in front. So does one that already starts with apostrophes and then one of these, so that taking one
apostrophe away always gives the text that was there.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from undermargin.errors import InputError
from undermargin.storage.files import replacing

FORMULA = r"^'*[=+\-@\t\r]"
GUARDED = r"^'+[=+\-@\t\r]"
NUMBER = r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?"  # a class called -1 does no harm


def guard(text: str) -> str:
    """A text that no spreadsheet runs.

    >>> guard("=1+1"), guard("-1"), guard("cat")
    ("'=1+1", '-1', 'cat')
    """
    return "'" + text if re.search(FORMULA, text) and not re.fullmatch(NUMBER, text) else text


def unguard(text: str) -> str:
    """The text that `guard` was given."""
    return text[1:] if re.search(GUARDED, text) else text


def write_rows(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file of single values, texts guarded; it appears whole or not at all. None becomes an empty cell."""
    with replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(map(guard, header))
        writer.writerows([guard(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def read_rows(path: str | Path, required: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column name of every row; guards are taken away, missing cells are empty."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True, restval="")
            names = [unguard(name) for name in reader.fieldnames or ()]
            missing = [name for name in required if name not in names]
            if missing:
                raise InputError(f"{path} has no column {', '.join(missing)}; columns are {', '.join(names) or 'none'}")
            for row in reader:
                if None in row:
                    raise InputError(f"{path}, line {reader.line_num}: more cells than the {len(names)} columns")
                yield reader.line_num, {unguard(name): unguard(cell) for name, cell in row.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV: {error}") from None


def write_tables(path: str | Path, tables: Iterable[pa.Table]) -> None:
    """Write a CSV file of one or more tables of the same columns, texts guarded; it appears whole or not at all."""
    parts = map(guard_table, tables)
    first = next(parts)
    with replacing(path) as partial, arrow_csv.CSVWriter(partial, first.schema) as writer:
        for part in (first, *parts):
            writer.write_table(part)


def guard_table(table: pa.Table) -> pa.Table:
    """The table with every text guarded; columns of numbers are not touched.

    >>> guard_table(pa.table({"id": ["=1+1", "-1", "cat"]}))["id"].to_pylist()
    ["'=1+1", '-1', 'cat']
    """
    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            table = table.set_column(position, column, _guarded(table[column.name]))
    return table


def _guarded(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    is_number = pc.match_substring_regex(texts, f"^{NUMBER}$")
    is_formula = pc.and_not(pc.match_substring_regex(texts, FORMULA), is_number)
    return pc.if_else(is_formula, pc.replace_substring_regex(texts, "^", "'", max_replacements=1), texts)


def unguard_column(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts that `guard_table` was given."""
    return pc.if_else(pc.match_substring_regex(texts, GUARDED), pc.utf8_slice_codeunits(texts, 1), texts)
