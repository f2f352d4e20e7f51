"""The scan folder: layout, lock, atomic writes, and a manifest written last.

config.json  manifest.json  summary.json  verdicts.parquet  verdicts.csv  clock.json
fold0/scores.parquet  fold0/checkpoint.safetensors  fold0/log.jsonl  fold1/...
decisions.sqlite, which people write in review
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError
from undermargin.procedure import NUM_FOLDS
from undermargin.scans.control import read_control
from undermargin.scans.decisions import ACTIONS, Decision, Decisions
from undermargin.scans.manifest import Manifest
from undermargin.sources.base import Source
from undermargin.sources.source import reopen
from undermargin.storage import consent as roots
from undermargin.storage.files import TEMPORARY, irregular, replacing
from undermargin.storage.json import to_json
from undermargin.storage.locks import at_once
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
SPILLED = re.compile(r"\.pixels\.[0-9a-f]{16}")  # images too many for memory, while a scan lasts
MOST_FOLDS = 1000  # more is no scan
NO_DATA = "none"  # the format of a scan of runs alone


class Folder:
    """A scan's folder. Every file appears whole or not at all; `locked()` keeps a second writer out."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = Manifest(self.path)
        self._known: tuple[Any, Verdicts] | None = None  # the state of verdicts.parquet, and what it holds

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @classmethod
    def open(cls, path: str | Path) -> "Folder":
        """The folder of a scan that was begun; symbolic links in it are refused."""
        folder = cls(path)
        if not folder.path.is_dir():
            raise FolderError(f"there is no folder {path}")
        if not (folder / "config.json").is_file():
            raise FolderError(f"{path} is not a scan's folder: it has no config.json")
        folder.check_links()
        return folder

    def check_links(self) -> None:
        """Raise if anything in the folder is a link: a scan from elsewhere could lead to other files through it."""
        if found := irregular(self.path):
            raise FolderError(
                f"{self.path} holds {len(found)} symbolic links or special files, the first is "
                f"{found[0].relative_to(self.path)}; undermargin follows no links inside a scan's folder. Replace them "
                "by plain files"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer, or raise; makes the folder if it does not exist."""
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise FolderError(f"{self.path} is a file; a scan needs a folder. Choose another path with --out") from None
        self.check_links()
        message = f"{self.path} is in use by another process; wait for it or choose another folder"
        try:
            with at_once(self / ".lock", message):
                self._remove_abandoned()
                yield
        finally:
            if is_new and [one.name for one in self.path.iterdir()] == [".lock"]:  # nothing came of it
                (self / ".lock").unlink()
                self.path.rmdir()

    def _remove_abandoned(self) -> None:
        """Delete temporary files that killed processes left; the lock says that no other process is writing."""
        for path in (*self.path.glob(".*"), *self.path.glob("fold*/**/.*")):
            if (TEMPORARY.fullmatch(path.name) or SPILLED.fullmatch(path.name)) and path.is_file():
                path.unlink()

    def fold(self, number: int) -> Path:
        """The folder of one fold's training, made if need be."""
        path = self / f"fold{number}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def epoch_seconds(self, number: int) -> list[float]:
        """How long each epoch of a fold took, by its log; one that was run again after a kill counts once."""
        path = self / f"fold{number}" / "log.jsonl"
        seconds: dict[int, float] = {}
        for line in path.read_bytes().splitlines() if path.is_file() else []:
            with suppress(ValueError, KeyError, TypeError):  # a line that was cut off by a full disk
                entry = json.loads(line)
                seconds[int(entry["epoch"])] = float(entry["seconds"])
        return [seconds[epoch] for epoch in sorted(seconds)]

    def write_json(self, name: str, value: Any) -> None:
        """Write a control file."""
        self.manifest.forget(name)
        with replacing(self / name) as path:
            path.write_text(to_json(value) + "\n", encoding="utf-8")

    def read_json(self, name: str) -> Any:
        """Read a control file: verified, and of the expected shape."""
        try:
            self.manifest.check(name)
            return read_control(self / name)
        except FileNotFoundError:
            if name == "config.json":
                raise FolderError(f"{self.path} is not a scan's folder: it has no config.json") from None
            raise FolderError(f"{self.path} has no {name}; it {self._unfinished() or _AGAIN}") from None

    def save_verdicts(self, verdicts: Verdicts, **more: Any) -> dict[str, Any]:
        """Write verdicts and summary; `more` goes into the summary, which is returned.

        What an earlier summary says about the training stays: it holds for other verdicts of the same scan, too.
        """
        before: dict[str, Any] = {}
        with suppress(FolderError):  # none yet, or damaged: it is written again
            before = self.read_json("summary.json")
        self.manifest.forget("verdicts.parquet", "verdicts.csv")
        verdicts.save(self / "verdicts.parquet")
        verdicts.save(self / "verdicts.csv")
        self._known = _state(self / "verdicts.parquet"), verdicts
        kept = {name: before[name] for name in OF_TRAINING if name in before}
        summary = verdicts.summary() | kept | more
        self.write_json("summary.json", summary)
        return summary

    @property
    def num_folds(self) -> int | None:
        """How many folds the configuration asks for; None: a folder made by hand, which does not say."""
        config = self.read_json("config.json")
        number: int | None = config.get("num_folds", NUM_FOLDS if "procedure" in config else None)
        if number is not None and not 0 < number <= MOST_FOLDS:
            raise FolderError(f"{self / 'config.json'} is damaged: num_folds is {number}")
        return number

    def runs(self) -> list[Run]:
        """What the trainings of all folds left behind; raises if one has not finished."""
        if missing := self._unfinished():
            raise FolderError(f"{self.path} {missing}")
        return [self.run(number) for number in self._finished_folds()]

    def run(self, number: int) -> Run:
        """What the training of one fold left behind."""
        self.manifest.check(f"fold{number}/scores.parquet")
        return Run.load(self / f"fold{number}" / "scores.parquet")

    def _finished_folds(self) -> list[int]:
        found = (re.fullmatch(r"fold(\d+)", path.parent.name) for path in self.path.glob("fold*/scores.parquet"))
        return sorted(int(match[1]) for match in found if match)

    def _unfinished(self) -> str | None:
        """In words, which folds are missing; None: the folder has all."""
        finished = self._finished_folds()
        wanted = range(self.num_folds or max(len(finished), 1))
        missing = [number for number in wanted if number not in finished]
        if not missing:
            return None
        epochs = " and ".join(f"fold {number} ({len(self.epoch_seconds(number))} epochs trained)" for number in missing)
        return (
            f"is unfinished: of {len(wanted)} folds, {epochs} has no scores.parquet. Rerun the same scan command "
            "to finish it"
        )

    def verdicts(self) -> Verdicts:
        """The scan's verdicts; read from the file only if it has changed since they were written or read last."""
        path = self / "verdicts.parquet"
        if not path.is_file():
            raise FolderError(f"{self.path} {self._unfinished() or f'has no verdicts.parquet; it {_AGAIN}'}")
        state = _state(path)
        if self._known is None or self._known[0] != state:
            self.manifest.check("verdicts.parquet")
            self._known = state, Verdicts.load(path)
        return self._known[1]

    def originals(self, verdicts: Verdicts, data: str | Path | None = None) -> Source:
        """The scan's data set, where it was, or where it is now."""
        config = self.read_json("config.json")
        found = config.get("source")
        if found is None:
            raise FolderError(f"{self / 'config.json'} is damaged: source is missing")
        source = dict(found) if isinstance(found, dict) else {"format": str(found)}  # a folder made by hand
        if data is not None:
            if source["format"] == NO_DATA:
                raise InputError(f"{self.path} was made without its data; pass source= to Scan.of")
            source["path"] = str(Path(data).absolute())
        ids = [str(index) for index in range(len(verdicts))] if verdicts.ids is None else verdicts.ids
        return reopen(source, config.get("kind", "images"), ids, fingerprint=config.get("fingerprint"))

    def confirmed_originals(self, verdicts: Verdicts) -> Source:
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

    @property
    def fingerprint(self) -> str:
        """The checksum of the data that were scanned."""
        fingerprint: str | None = self.read_json("config.json").get("fingerprint")
        if fingerprint is None:
            raise FolderError(f"{self / 'config.json'} is damaged: fingerprint is missing")
        return fingerprint

    def decisions(self) -> Decisions:
        """What people decided about the scan's samples."""
        num_samples = self.read_json("config.json").get("num_samples")
        return Decisions.open(self / "decisions.sqlite", fingerprint=self.fingerprint, num_samples=num_samples)

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
        try:
            found = {int(index): Decision(action, label) for index, (action, label) in named.items()}
        except (ValueError, TypeError):
            found = {-1: Decision("keep")}
        if any(index < 0 or one.action not in ACTIONS for index, one in found.items()):
            raise FolderError(f"{self / 'config.json'} is damaged: trusted holds no decisions")
        return found

    def decided_about(self, fingerprint: str) -> dict[int, Decision]:
        """The decisions that count, for another scan of the data with this fingerprint."""
        if self.fingerprint != fingerprint:
            raise FolderError(f"{self.path} holds decisions about other data; they cannot be applied to these samples")
        return self.decided()

    def write_manifest(self) -> None:
        """List every file with its size and checksum; written last, so a folder that has it is complete."""
        self.manifest.write()

    def damaged(self) -> list[str]:
        """Files that are missing or differ from the manifest."""
        return self.manifest.damaged()


_AGAIN = "can be written again with 'undermargin identify'"


def _state(path: Path) -> tuple[int, int, int]:
    """What tells a file from the one that replaces it."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
