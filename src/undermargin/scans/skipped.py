"""Samples that a scan could not read, in skipped.csv."""

import csv
from collections.abc import Sequence

import pyarrow as pa

from undermargin.scans.folder import Folder
from undermargin.storage.csv import neutralise
from undermargin.storage.files import replacing


def write_skipped(folder: Folder, skipped: Sequence[tuple[str, str]]) -> None:
    """List ids and reasons; no file where every sample could be read."""
    if skipped:
        ids, reasons = zip(*skipped, strict=True)
        columns = neutralise(pa.table({"id": ids, "reason": reasons})).to_pydict()
        with replacing(folder / "skipped.csv") as path, path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([tuple(columns), *zip(*columns.values(), strict=True)])
