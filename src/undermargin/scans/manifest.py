"""Checksums of a scan's files: written last, and verified whenever one of the files is read."""

import hashlib
import json
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError
from undermargin.storage.files import TEMPORARY, read_regular, replacing
from undermargin.storage.json import to_json

NAME = "manifest.json"
# what is written after the manifest: by people in review, and by reports and retraining
LIVING = (
    ".lock", NAME, "report.html", "retrain.json", "decisions.sqlite", "decisions.sqlite-wal", "decisions.sqlite-shm",
)  # fmt: skip


class Manifest:
    """The list of a folder's files with size and checksum. A folder without one, or a file not on it, is not checked:
    the scan is unfinished, or was interrupted while the file was replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def files(self) -> dict[str, Any]:
        """Entries by relative path; empty where there is no manifest."""
        try:
            files = json.loads(read_regular(self.folder / NAME))["files"]
            return {name: {"sha256": str(entry["sha256"])} | entry for name, entry in files.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FolderError(
                f"{self.folder / NAME} is damaged: {error}; delete it to go on without checksums"
            ) from None

    def check(self, name: str) -> None:
        """Raise if a file differs from what was written."""
        expected = self.files.get(name)
        if expected is not None and _checksum(self.folder / name) != expected["sha256"]:
            raise FolderError(
                f"{self.folder / name} does not match its checksum in {NAME}: it was damaged or edited. "
                f"{_REPAIR.get(Path(name).name, 'Bring back a copy, or scan again')}"
            )

    def forget(self, *names: str) -> None:
        """Take files off the list before they are replaced."""
        files = self.files
        if not files.keys().isdisjoint(names):
            self._write({name: entry for name, entry in files.items() if name not in names})

    def write(self) -> None:
        """List every file; a folder that has all of them on its list is complete."""
        files = [*self.folder.glob("*"), *self.folder.glob("fold*/**/*")]
        listed = sorted(path for path in files if path.is_file() and not _is_living(path.name))
        self._write(
            {
                path.relative_to(self.folder).as_posix(): {"bytes": path.stat().st_size, "sha256": _checksum(path)}
                for path in listed
            }
        )

    def damaged(self) -> list[str]:
        """Files that are missing or differ from the list."""
        return [
            name
            for name, entry in self.files.items()
            if not (self.folder / name).is_file() or _checksum(self.folder / name) != entry["sha256"]
        ]

    def _write(self, files: dict[str, Any]) -> None:
        with replacing(self.folder / NAME) as path:
            path.write_text(to_json({"files": files}) + "\n", encoding="utf-8")


_REPAIR = {
    "verdicts.parquet": "Compute the verdicts again with 'undermargin identify'",
    "summary.json": "Write it again with 'undermargin identify'",
    "scores.parquet": "Delete it and rerun the same scan command to train this fold again",
}


def _is_living(name: str) -> bool:
    return name in LIVING or TEMPORARY.fullmatch(name) is not None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
