"""Excel workbooks (.xlsx): the rows of the first sheet, below a row of column names."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit
from undermargin.sources.numpy_files import check_unpacked
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading
from undermargin.storage.files import replacing


class Excel(Rows):
    """The first sheet of a workbook. Cleaned in place of the old rows: formats and other sheets stay."""

    noun: ClassVar[str] = "an Excel workbook"

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The rows below the first one, which names the columns; formulas count with their stored values."""
        splits.refuse(path, reading.split)
        with _opened(path, reading, read_only=True, data_only=True) as book:
            rows = [row for row in book.worksheets[0].iter_rows(values_only=True) if _has_values(row)]
        if not rows:
            raise InputError(f"the first sheet of {path} is empty")
        width = max(place for row in rows for place, value in enumerate(row, 1) if value is not None)
        names = ["" if name is None else str(name) for name in rows[0][:width]]
        names += [""] * (width - len(names))
        columns = [_column([row[place] if place < len(row) else None for row in rows[1:]]) for place in range(width)]
        named = [place for place, name in enumerate(names) if name]
        return pa.table([columns[place] for place in named], names=[names[place] for place in named])

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the workbook with the rows that stay moved up; formulas in them are not adjusted."""
        with _opened(self.place, self.reading) as book:
            self._edit(book.worksheets[0], edit)
            with replacing(target) as partial:
                book.save(partial)

    def _edit(self, sheet: Any, edit: Edit) -> None:
        numbers = [number for number, row in enumerate(sheet.iter_rows(values_only=True), 1) if _has_values(row)]
        header, rows = numbers[0], numbers[1:]
        if len(rows) != len(edit.is_kept):
            raise InputError(f"{self.path} now has {len(rows)} rows, the scan saw {len(edit.is_kept)}")
        column = next(cell.column for cell in sheet[header] if str(cell.value) == self.label_column)
        labels = [sheet.cell(row, column).value for row in rows]
        for row, other in zip(rows, edit.label_from.tolist(), strict=True):
            sheet.cell(row, column).value = labels[other]
        _remove(sheet, {row for row, is_kept in zip(rows, edit.is_kept.tolist(), strict=True) if not is_kept})


@contextmanager
def _opened(path: Path, reading: Reading, **options: Any) -> Iterator[Any]:
    """A workbook with at least one sheet, whose parts do not fill the memory when they are unpacked."""
    try:
        import openpyxl
    except ImportError:
        raise InputError("Excel files need the package openpyxl: pip install 'undermargin[excel]'") from None
    with path.open("rb") as file:  # opened here: openpyxl leaves a damaged file open
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                check_unpacked(info, reading)
        book = openpyxl.load_workbook(file, **options)
        if not book.worksheets:
            raise ValueError("it has no sheets")
        yield book
        book.close()


def _has_values(row: Any) -> bool:
    return any(value is not None for value in row)


def _column(values: list[Any]) -> pa.Array:
    """Cells of one type as they are; a column that mixes types as texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        is_whole = float not in kinds and all(abs(value) < 2**63 for value in values if value is not None)
        return pa.array(values if is_whole else [None if value is None else float(value) for value in values])
    if len(kinds) == 1 and kinds <= {str, bool, datetime, time, timedelta}:
        return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _remove(sheet: Any, dropped: set[int]) -> None:
    """Remove rows by moving those below up, all in one pass; openpyxl would move everything once per row."""
    target = 1
    last = sheet.max_row
    for row in range(1, last + 1):
        if row in dropped:
            continue
        if row != target:
            for old in sheet[row]:
                new = sheet.cell(target, old.column)
                new.value, new._style = old.value, old._style
        target += 1
    sheet.delete_rows(target, last - target + 1)
