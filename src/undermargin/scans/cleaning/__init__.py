"""The data set without dropped samples and with relabels applied, in the format it came in."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.scans.cleaning.arrays import labels_beside, write_arrays
from undermargin.scans.cleaning.changes import Changes, Flagged, plan
from undermargin.scans.cleaning.check import check
from undermargin.scans.cleaning.class_folders import layout, write_class_folders
from undermargin.scans.cleaning.csv_rows import write_csv
from undermargin.scans.cleaning.dataset import write_dataset
from undermargin.scans.cleaning.edit import Edit
from undermargin.scans.cleaning.json_lines import write_json_lines
from undermargin.scans.cleaning.parquet import write_parquet
from undermargin.scans.folder import Folder
from undermargin.sources.originals import ARRAYS, CLASS_FOLDERS, Originals
from undermargin.storage import consent as roots
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json
from undermargin.verdicts.record import Verdicts

# How a format of rows is written again: (source, target, edit, column of labels).
WRITERS: dict[str, Callable[[Path, Path, Edit, str], None]] = {
    "CSV": write_csv,
    "TSV": write_csv,
    "JSON lines": write_json_lines,
    "Parquet": write_parquet,
    "Dataset": write_dataset,
    ARRAYS: write_arrays,
}


@dataclass(frozen=True)
class Cleaning:
    """What is to be done to a scan's data: planned, not yet written."""

    folder: Folder
    originals: Originals
    verdicts: Verdicts
    changes: Changes
    flagged: Flagged

    @classmethod
    def of(cls, scan: str | Path, *, flagged: Flagged = "drop", data: str | Path | None = None) -> "Cleaning":
        """From a scan's verdicts and decisions; decisions overrule verdicts."""
        folder = Folder.open(scan)
        verdicts = folder.verdicts()
        changes = plan(verdicts, folder.decided(), flagged=flagged)
        originals = folder.originals(verdicts, data)
        if data is not None and originals.path is not None:
            roots.confirm(folder.path, originals.path)  # whoever names the data has agreed to them
        return cls(folder, originals, verdicts, changes, flagged)

    def summary(self) -> dict[str, Any]:
        """What changes, in all and in each class."""
        return self.changes.summary()

    def write(self, target: str | Path, *, is_linked: bool = False) -> Path:
        """Write the cleaned data, and a manifest beside them, which is returned; nothing is ever overwritten."""
        target, source = Path(target), self.originals.path
        if source is None or not source.exists():
            raise InputError(f"the data are not at {source or 'any path'}; say where with --data, or write --indices")
        self.folder.check_data(source)
        _check_target(target, source, self.originals.format)
        check(self.originals, self.verdicts, self.folder.read_json("config.json"))
        is_folders = self.originals.format == CLASS_FOLDERS
        if is_linked and not is_folders:
            raise InputError(f"--link is for class folders; {self.originals.format} is written anew")
        target.parent.mkdir(parents=True, exist_ok=True)
        names = layout(source, self.changes) if is_folders else {}
        manifest = manifest_of(target)
        with replacing(manifest) as partial:  # before the data: who finds these finds it too
            partial.write_text(to_json(self.manifest(names)) + "\n")
        try:
            if is_folders:
                write_class_folders(source, target, names, is_linked=is_linked)
            else:
                edit = Edit.of(self.changes, *self._rows())
                WRITERS[self.originals.format](source, target, edit, self.originals.source.get("label", ""))
        except BaseException:
            manifest.unlink()
            raise
        return manifest

    def write_indices(self, target: str | Path) -> None:
        """Write index, id and label of every sample that stays: for data that are not files."""
        target = Path(target)
        if target.exists():
            raise InputError(f"{target} is there already and is not overwritten; choose another name")
        changes = self.changes
        with replacing(target) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("index", "id", "label"))
            for index in np.flatnonzero(~changes.is_dropped).tolist():
                writer.writerow((index, changes.ids[index], changes.class_names[changes.new_labels[index]]))

    def manifest(self, names: Mapping[str, str]) -> dict[str, Any]:
        """What was done and why: a summary, and a row a changed sample; `names` are new names of files."""
        rows = [row | ({"new_id": names[row["id"]]} if row["id"] in names else {}) for row in self.changes.rows()]
        return {
            "scan": str(self.folder.path.resolve()),
            "source": str(self.originals.path),
            "flagged": self.flagged,
            **self.summary(),
            "changes": rows,
            "skipped": _skipped(self.folder),
        }

    def _rows(self) -> tuple[Any, int]:
        if self.originals.format == ARRAYS:
            return np.arange(len(self.verdicts)), len(self.verdicts)
        return self.originals.rows, len(self.originals.table)


def manifest_of(target: Path) -> Path:
    """Where the list of changes is."""
    return target.with_name(f"{target.name}.manifest.json")


def _check_target(target: Path, source: Path, kind: str) -> None:
    taken = [target]
    if source.is_file() and target.suffix.lower() != source.suffix.lower():
        raise InputError(f"{source.name} is cleaned into the same format; name it {target.name}{source.suffix}")
    if kind == ARRAYS and source.suffix.lower() == ".npy":
        taken.append(labels_beside(target))
    for path in taken:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path} is there already and is not overwritten; choose another name")
    if source.is_dir() and target.resolve().is_relative_to(source.resolve()):
        raise InputError(f"{target} is inside the data itself, {source}; choose a place outside")


def _skipped(folder: Folder) -> list[dict[str, str]]:
    """Images that the scan could not read; they stay as they are."""
    path = folder / "skipped.csv"
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
