"""The scan folder: layout, lock, atomic writes, and a manifest written last.

config.json  manifest.json  summary.json  verdicts.parquet  verdicts.csv  clock.json
fold0/scores.parquet  fold0/checkpoint.safetensors  fold0/log.jsonl  fold1/...
decisions.sqlite, which people write in review
"""

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError
from undermargin.scans.decisions import Decision, Decisions
from undermargin.sources.originals import Originals
from undermargin.storage import consent as roots
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json
from undermargin.tracking.run import Run
from undermargin.verdicts.record import Verdicts

OF_TRAINING = (
    "kind",
    "noise",
    "model",
    "num_skipped",
    "epochs",
    "saved_epochs",
    "seconds",
    "training_seconds",
    "samples_per_second",
)
LIVING = (
    ".lock",
    "manifest.json",
    "report.html",
    "retrain.json",
    "decisions.sqlite",
    "decisions.sqlite-wal",
    "decisions.sqlite-shm",
)
NO_DATA = "none"  # the format of a scan of runs alone


class Folder:
    """A scan's folder. Every file appears whole or not at all; `locked()` keeps a second writer out."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._known: tuple[Any, Verdicts] | None = None  # the state of verdicts.parquet, and what it holds

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @classmethod
    def open(cls, path: str | Path) -> "Folder":
        """A finished scan's folder."""
        folder = cls(path)
        if not folder.path.is_dir():
            raise FolderError(f"there is no folder {path}")
        if not (folder / "config.json").is_file():
            raise FolderError(f"{path} is not a scan's folder: it has no config.json")
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer, or say that somebody else is."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"{self.path} is in use by another process; wait for it or choose another folder"
                ) from None
            yield

    def fold(self, number: int) -> Path:
        """The folder of one fold's training, made if need be."""
        path = self / f"fold{number}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def epoch_seconds(self, number: int) -> list[float]:
        """How long each epoch of a fold took, by its log; one that was run again after a kill counts once."""
        path = self.fold(number) / "log.jsonl"
        seconds: dict[int, float] = {}
        for line in path.read_text().splitlines() if path.is_file() else []:
            with suppress(json.JSONDecodeError):  # a line that was cut off by a full disk
                entry = json.loads(line)
                seconds[entry["epoch"]] = entry["seconds"]
        return [seconds[epoch] for epoch in sorted(seconds)]

    def write_json(self, name: str, value: Any) -> None:
        """Write a control file."""
        with replacing(self / name) as path:
            path.write_text(to_json(value) + "\n")

    def read_json(self, name: str) -> Any:
        """Read a control file."""
        try:
            return json.loads((self / name).read_text())
        except FileNotFoundError:
            raise FolderError(f"{self.path} has no {name}; did the scan finish?") from None
        except json.JSONDecodeError as error:
            raise FolderError(f"{self / name} is damaged: {error}") from None

    def save_verdicts(self, verdicts: Verdicts, **more: Any) -> dict[str, Any]:
        """Write verdicts and summary; `more` goes into the summary, which is returned.

        What an earlier summary says about the training stays: it holds for other verdicts of the same scan, too.
        """
        verdicts.save(self / "verdicts.parquet")
        verdicts.save(self / "verdicts.csv")
        self._known = _state(self / "verdicts.parquet"), verdicts
        before = self.read_json("summary.json") if (self / "summary.json").is_file() else {}
        kept = {name: before[name] for name in OF_TRAINING if name in before}
        summary = verdicts.summary() | kept | more
        self.write_json("summary.json", summary)
        return summary

    def runs(self) -> list[Run]:
        """What the folds' trainings left behind."""
        paths = sorted(self.path.glob("fold*/scores.parquet"))
        if not paths:
            raise FolderError(f"{self.path} has no fold*/scores.parquet; did the scan finish?")
        return [Run.load(path) for path in paths]

    def verdicts(self) -> Verdicts:
        """The scan's verdicts; read from the file only if it has changed since they were written or read last."""
        path = self / "verdicts.parquet"
        if not path.is_file():
            raise FolderError(f"{self.path} has no verdicts.parquet; did the scan finish?")
        state = _state(path)
        if self._known is None or self._known[0] != state:
            self._known = state, Verdicts.load(path)
        return self._known[1]

    def originals(self, verdicts: Verdicts, data: str | Path | None = None) -> Originals:
        """The scan's data set, where it was, or where it is now."""
        config = self.read_json("config.json")
        found = config["source"]
        source = dict(found) if isinstance(found, dict) else {"format": str(found)}  # a folder made by hand
        if data is not None:
            if source["format"] == NO_DATA:
                raise InputError(f"{self.path} was made without its data; pass source= to Scan.of")
            source["path"] = str(Path(data).absolute())
        ids = [str(index) for index in range(len(verdicts))] if verdicts.ids is None else verdicts.ids
        return Originals(source, config.get("kind", "images"), ids)

    def confirmed_originals(self, verdicts: Verdicts) -> Originals:
        """The same, but only what this user scanned here or has agreed to: others may have written the folder."""
        originals = self.originals(verdicts)
        self.check_data(originals.path)
        return originals

    def check_data(self, path: Path | None) -> None:
        """Refuse to read what is at a path that the folder names, unless this user scanned it here or has agreed."""
        if path is not None and path.exists() and not roots.is_confirmed(self.path, path):
            raise FolderError(
                f"{self.path} was not scanned here, and names {path} as its data; agree to that once with "
                f"'undermargin review {self.path}'"
            )

    def decisions(self) -> Decisions:
        """What people decided about the scan's samples."""
        return Decisions.open(self / "decisions.sqlite", fingerprint=self.read_json("config.json")["fingerprint"])

    def decided(self) -> dict[int, Decision]:
        """The decisions that count, by index: those that the scan trusted, and later ones of its own review."""
        if not (self / "decisions.sqlite").is_file():
            return self.trusted()
        decisions = self.decisions()
        try:
            return self.trusted() | decisions.latest()
        finally:
            decisions.close()

    def trusted(self) -> dict[int, Decision]:
        """Decisions of an earlier scan that this one was told to trust, by index."""
        named = self.read_json("config.json").get("trusted") or {}
        return {int(index): Decision(action, label) for index, (action, label) in named.items()}

    def decided_about(self, fingerprint: str) -> dict[int, Decision]:
        """The decisions that count, for another scan of the data with this fingerprint."""
        if self.read_json("config.json")["fingerprint"] != fingerprint:
            raise FolderError(f"{self.path} holds decisions about other data; they cannot be applied to these samples")
        return self.decided()

    def write_manifest(self) -> None:
        """List every file with its size and checksum; written last, so a folder that has it is complete."""
        files = [*self.path.glob("*"), *self.path.glob("fold*/**/*")]
        listed = sorted(path for path in files if path.is_file() and path.name not in LIVING)
        entries = {
            str(path.relative_to(self.path)): {"bytes": path.stat().st_size, "sha256": _checksum(path)}
            for path in listed
        }
        self.write_json("manifest.json", {"files": entries})

    def damaged(self) -> list[str]:
        """Files that are missing or differ from the manifest."""
        files = self.read_json("manifest.json")["files"]
        return [
            name
            for name, entry in files.items()
            if not (self / name).is_file() or _checksum(self / name) != entry["sha256"]
        ]


def _state(path: Path) -> tuple[int, int, int]:
    """What tells a file from the one that replaces it."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
