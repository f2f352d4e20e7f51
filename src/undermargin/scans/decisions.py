"""What people decided about samples, in a scan's decisions.sqlite: a log to which lines are added, never changed.

The last line about a sample counts, and its number is the sample's version. A decision names the version it is based
on, so that two people cannot overwrite each other without noticing.
"""

import getpass
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from undermargin.errors import FolderError

Action = Literal["keep", "relabel", "drop"]
ACTIONS: tuple[Action, ...] = get_args(Action)
MOST_LINES = 2**63 - 1  # that SQLite can number
LAYOUT = 1  # of the file; counted up when the tables change
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sample INTEGER NOT NULL,
    action TEXT CHECK (action IN ('keep', 'relabel', 'drop')), -- null: the decision was taken back
    label TEXT,
    note TEXT NOT NULL,
    time TEXT NOT NULL,
    who TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS log_sample ON log (sample, number);
"""


@dataclass(frozen=True)
class Decision:
    """A human's answer for one sample."""

    action: Action
    label: str | None = None  # the new class, where the action is relabel
    note: str = ""
    when: str = ""  # ISO 8601, UTC; filled in when it is written
    who: str = ""

    def about(self, label: str) -> "Decision":
        """The decision about a sample with this label: relabeling it with the label it has means keeping it."""
        return replace(self, action="keep", label=None) if self.label == label else self


@dataclass(frozen=True)
class Change:
    """A decision to be written, or None to take the last one back; `seen` is the version it is based on."""

    index: int
    decision: Decision | None
    seen: int | None = None  # None: any version


@dataclass(frozen=True)
class Entry:
    """Where a sample stands: its version (0: never decided) and the decision that counts, if there is one."""

    version: int = 0
    decision: Decision | None = None


@dataclass(frozen=True)
class Outcome:
    """What happened to changes, by index: saved, or refused because the sample was decided in the meantime."""

    saved: dict[int, Entry]
    conflicts: dict[int, Entry]


class Decisions:
    """The log of one scan's decisions; safe to use from several threads and from several processes."""

    def __init__(self, path: Path, connection: sqlite3.Connection, num_samples: int | None = None) -> None:
        self.path = path
        self.num_samples = num_samples
        self._connection = connection
        self._lock = threading.RLock()
        self._entries: dict[int, Entry] = {}  # the log's end for each sample, as far as it was read
        self._number = 0

    @classmethod
    def open(cls, path: str | Path, *, fingerprint: str | None = None, num_samples: int | None = None) -> "Decisions":
        """Open the log, or begin one; with a fingerprint, only one about that data."""
        path = Path(path)
        for one in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))):
            if one.is_symlink() or (one.exists() and not one.is_file()):
                raise FolderError(f"{one} is not a regular file; undermargin follows no links inside a scan's folder")
        with _as_folder_error(path):
            connection = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
            try:
                _prepare(connection, path)
                _compare(connection, path, fingerprint)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, num_samples)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def latest(self) -> dict[int, Decision]:
        """The decision that counts, by index, for every sample that has one."""
        return {index: entry.decision for index, entry in self.entries().items() if entry.decision is not None}

    @property
    def number(self) -> int:
        """The log's last line."""
        with self._lock:
            self._read_on()
            return self._number

    def entries(self, as_of: int | None = None) -> dict[int, Entry]:
        """Where every sample stands that was ever decided; with `as_of`, where it stood at that line of the log."""
        with self._lock, _as_folder_error(self.path):
            if as_of is not None:
                last = "SELECT max(number) FROM log WHERE number <= ? GROUP BY sample"
                line = min(as_of, MOST_LINES)
                rows = self._connection.execute(f"SELECT * FROM log WHERE number IN ({last})", (line,))  # noqa: S608
                return dict(map(self._entry, rows))
            self._read_on()
            return self._entries.copy()

    def decide(self, changes: Sequence[Change], *, who: str | None = None) -> Outcome:
        """Write changes at once and durably; one whose sample has moved on since it was seen is left out.

        Of several changes to one sample the last counts.
        """
        outcome = Outcome({}, {})
        changes = list({change.index: change for change in changes}.values())
        with self._lock, _as_folder_error(self.path), self._writing():
            self._read_on()
            for change in changes:
                entry = self._entries.get(change.index, Entry())
                if change.seen is not None and change.seen != entry.version:
                    outcome.conflicts[change.index] = entry
                    continue
                self._add(change, who or user())
            self._read_on()
            outcome.saved.update(
                {one.index: self._entries[one.index] for one in changes if one.index not in outcome.conflicts}
            )
        return outcome

    def times(self, most: int) -> list[datetime]:
        """When the last decisions were made, oldest first."""
        with self._lock, _as_folder_error(self.path):
            query = "SELECT time FROM log WHERE action IS NOT NULL ORDER BY number DESC LIMIT ?"
            return [datetime.fromisoformat(time) for (time,) in self._connection.execute(query, (most,))][::-1]

    def _add(self, change: Change, who: str) -> None:
        decision = change.decision
        given = decision or Decision("keep")  # taking back has a time and an author too
        self._connection.execute(
            "INSERT INTO log (sample, action, label, note, time, who) VALUES (?, ?, ?, ?, ?, ?)",
            (
                change.index,
                decision and decision.action,
                decision and decision.label,
                given.note,
                given.when or now(),
                given.who or who,
            ),
        )

    def _read_on(self) -> None:
        """Read lines that were added since, by us or by another process."""
        for row in self._connection.execute("SELECT * FROM log WHERE number > ? ORDER BY number", (self._number,)):
            index, entry = self._entry(row)
            self._entries[index] = entry
            self._number = entry.version

    def _entry(self, row: tuple[Any, ...]) -> tuple[int, Entry]:
        """A line of the log; one that cannot be ours is refused."""
        number, sample, action, label, *texts = row
        is_known = isinstance(sample, int) and 0 <= sample < (self.num_samples or MOST_LINES)
        is_text = all(isinstance(text, str) for text in texts) and isinstance(label, str | None)
        if (
            not is_known
            or not is_text
            or action not in (*ACTIONS, None)
            or (action == "relabel") != (label is not None)
        ):
            raise FolderError(f"{self.path} is damaged: line {number} of its log is not a decision about a sample")
        return sample, Entry(number, Decision(action, label, *texts) if action else None)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")  # no other process writes between our look and our line
        before, number = self._entries.copy(), self._number
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._entries, self._number = before, number
            if self._connection.in_transaction:  # a full disk has ended it already
                self._connection.execute("ROLLBACK")
            raise


def now() -> str:
    """The time, as it is written into the log."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def user() -> str:
    """The name of the user at the keyboard."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know no names
        return "unknown"


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN")  # one view: another process may be making the tables at this moment
    (num_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute("COMMIT")
    if layout > LAYOUT:
        raise FolderError(f"{path} was written by a newer undermargin (layout {layout}, known is {LAYOUT}); upgrade")
    if not layout and num_tables:
        raise FolderError(f"{path} is the database of another program; undermargin does not write into it")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # confirmed means on the disk
    if not layout:
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {LAYOUT}; COMMIT;")


def _compare(connection: sqlite3.Connection, path: Path, fingerprint: str | None) -> None:
    """Raise if the log was begun with other data."""
    if fingerprint is None:
        return
    connection.execute("INSERT OR IGNORE INTO about VALUES ('fingerprint', ?)", (fingerprint,))
    (found,) = connection.execute("SELECT value FROM about WHERE name = 'fingerprint'").fetchone()
    if found != fingerprint:
        raise FolderError(
            f"{path} holds decisions about other data (fingerprint {found}, the scan's is {fingerprint}); "
            "move it away, or review the scan it belongs to"
        )


@contextmanager
def _as_folder_error(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise FolderError(f"{path} cannot be used: {error}") from None
