"""Decisions as a CSV file, for a spreadsheet or another tool: written, and read back. Samples are named by id."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from undermargin.errors import InputError
from undermargin.review.selection import class_number
from undermargin.scans.decisions import ACTIONS, Change, Decision, Decisions
from undermargin.scans.folder import Folder
from undermargin.storage.csv import read_rows, write_rows
from undermargin.verdicts.record import Verdicts

COLUMNS = ("id", "action", "label", "note", "when", "who")
REQUIRED = ("id", "action")


def write_sheet(path: Path, decisions: Decisions, ids: Sequence[str]) -> int:
    """Write one row per decided sample, in the order of the data set, and return how many."""
    latest = decisions.latest()
    rows = (
        (ids[index], one.action, one.label or "", one.note, one.when, one.who) for index, one in sorted(latest.items())
    )
    write_rows(path, COLUMNS, rows)
    return len(latest)


def read_sheet(path: Path, decisions: Decisions, ids: Sequence[str], verdicts: Verdicts) -> tuple[int, int]:
    """Import all rows or none; returns how many, and how many of them replaced another decision."""
    changes = _changes(path, {name: index for index, name in enumerate(ids)}, verdicts)
    before = decisions.latest()
    decisions.decide(changes)
    return len(changes), sum(before.get(change.index, change.decision) != change.decision for change in changes)


def _changes(path: Path, indices: dict[str, int], verdicts: Verdicts) -> list[Change]:
    changes: dict[int, Change] = {}
    for line, row in read_rows(path, REQUIRED):
        place = f"{path}, line {line}"
        index = indices.get(row["id"])
        if index is None:
            raise InputError(f"{place}: the scan has no sample with the id {row['id']!r}; nothing was imported")
        if index in changes:
            raise InputError(f"{place}: {row['id']!r} has another row in this file; nothing was imported")
        changes[index] = Change(index, _decision(row, place, index, verdicts))
    return list(changes.values())


def _decision(row: dict[str, str], place: str, index: int, verdicts: Verdicts) -> Decision:
    action, label, when = row["action"], row.get("label") or None, row.get("when") or ""
    if action not in ACTIONS:
        raise InputError(f"{place}: {action!r} is none of {', '.join(ACTIONS)}; nothing was imported")
    if (action == "relabel") != (label is not None):
        raise InputError(f"{place}: only relabel has a label; found {action} with {label!r}; nothing was imported")
    try:
        if label is not None:
            class_number(verdicts, label)
        if when and datetime.fromisoformat(when).tzinfo is None:
            raise InputError(f"the time {when} has no zone; write {when}Z for UTC")
    except ValueError as error:  # InputError is one too
        raise InputError(f"{place}: {error}; nothing was imported") from None
    decision = Decision(action, label, row.get("note") or "", when, row.get("who") or "")
    return decision if verdicts.labels is None else decision.about(verdicts.name(int(verdicts.labels[index])))


def exchange(folder: Folder, source: Path | None, target: Path | None) -> dict[str, int]:
    """Import a scan's decisions from `source`, then write them to `target`, where these are given."""
    if target is not None and target.exists():
        raise InputError(f"{target} already exists; choose another path or delete it")
    verdicts, decisions = folder.verdicts(), folder.decisions()
    ids = folder.originals(verdicts).ids
    found = {}
    try:
        if source is not None:
            found["num_imported"], found["num_replaced"] = read_sheet(source, decisions, ids, verdicts)
        if target is not None:
            found["num_exported"] = write_sheet(target, decisions, ids)
    finally:
        decisions.close()
    return found
