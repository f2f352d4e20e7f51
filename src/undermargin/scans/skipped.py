"""Samples that a scan could not read, in skipped.csv."""

from collections.abc import Sequence

from undermargin.scans.folder import Folder
from undermargin.storage.csv import write_rows


def write_skipped(folder: Folder, skipped: Sequence[tuple[str, str]]) -> None:
    """List ids and reasons; no file where every sample could be read."""
    if skipped:
        write_rows(folder / "skipped.csv", ("id", "reason"), skipped)
