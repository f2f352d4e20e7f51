"""Clean: the data set without dropped samples and with relabels applied, in the format it came in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.decisions import Decision
from undermargin.scans.effects import effects
from undermargin.scans.folder import Folder
from undermargin.sources.base import Edit, Source
from undermargin.storage import consent
from undermargin.storage.csv import read_rows, write_rows
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json
from undermargin.verdicts.record import Verdicts

Ints = npt.NDArray[np.int64]
Flagged = Literal["drop", "relabel", "keep"]

NO_OTHER = "verdict: flagged, and no other label to suggest"
MOST_LOST = 0.5  # share of a class; losing more is worth a warning


@dataclass(frozen=True, eq=False)
class Changes:
    """What becomes of every sample, in the order of the data set. `why` names the verdict or decision behind it."""

    ids: Sequence[str]
    class_names: Sequence[str]
    labels: Ints  # (samples,) as they are
    new_labels: Ints  # (samples,) as they will be
    is_dropped: npt.NDArray[np.bool_]  # (samples,)
    why: Mapping[int, str]
    scores: npt.NDArray[np.floating[Any]]

    @cached_property
    def relabeled(self) -> Ints:
        """Indices of the samples that stay with another label."""
        return np.flatnonzero((self.labels != self.new_labels) & ~self.is_dropped)

    def edit(self) -> Edit:
        """The same for a source: a new label is written as it stands at another sample that has it."""
        exemplars = np.full(len(self.class_names), -1)
        exemplars[self.labels[::-1]] = np.arange(len(self.labels))[::-1]
        wanted = self.new_labels[self.relabeled]
        missing = sorted({self.class_names[label] for label in wanted[exemplars[wanted] < 0].tolist()})
        if missing:
            raise InputError(f"no sample has the label {', '.join(missing)}, so how to write it is not known")
        label_from = np.arange(len(self.labels))
        label_from[self.relabeled] = exemplars[wanted]
        return Edit(~self.is_dropped, label_from)

    def rows(self) -> list[dict[str, Any]]:
        """One row per changed sample."""
        changed = np.flatnonzero(self.is_dropped | (self.labels != self.new_labels)).tolist()
        return [
            {
                "index": index,
                "id": self.ids[index],
                "action": "drop" if self.is_dropped[index] else "relabel",
                "label": self.class_names[self.labels[index]],
                "new_label": None if self.is_dropped[index] else self.class_names[self.new_labels[index]],
                "why": self.why[index],
                "score": float(self.scores[index]),
            }
            for index in changed
        ]

    def classes(self) -> list[dict[str, Any]]:
        """One row per class: how many samples it had, loses, gains, and has."""
        size = len(self.class_names)
        before = np.bincount(self.labels, minlength=size)
        dropped = np.bincount(self.labels[self.is_dropped], minlength=size)
        away = np.bincount(self.labels[self.relabeled], minlength=size)
        gained = np.bincount(self.new_labels[self.relabeled], minlength=size)
        return [
            {
                "label": self.class_names[label],
                "num_before": int(before[label]),
                "num_dropped": int(dropped[label]),
                "num_relabeled": int(away[label]),
                "num_gained": int(gained[label]),
                "num_after": int((before - dropped - away + gained)[label]),
            }
            for label in range(size)
        ]

    def summary(self) -> dict[str, Any]:
        """Counts, and the classes that lose more than half of their samples."""
        classes = self.classes()
        return {
            "num_before": len(self.labels),
            "num_dropped": int(self.is_dropped.sum()),
            "num_relabeled": len(self.relabeled),
            "num_after": int((~self.is_dropped).sum()),
            "num_without_suggestion": sum(why == NO_OTHER for why in self.why.values()),
            "classes": classes,
            "shrinking": [
                row["label"]
                for row in classes
                if row["num_dropped"] + row["num_relabeled"] > MOST_LOST * row["num_before"]
            ],
        }


def plan(verdicts: Verdicts, decisions: Mapping[int, Decision], *, flagged: Flagged = "drop") -> Changes:
    """Decisions come first; other flagged samples are dropped, relabeled as suggested, or kept.

    A flagged sample without a suggestion cannot be relabeled and is dropped.
    """
    if verdicts.labels is None:
        raise InputError("the verdicts have no labels, so there is nothing to clean; give labels to the runs")
    names = verdicts.classes
    new_labels, is_dropped = verdicts.labels.copy(), np.zeros(len(verdicts), bool)
    why: dict[int, str] = {}
    suggested = verdicts.suggested_labels
    for index in verdicts.flagged.tolist() if flagged != "keep" else []:
        why[index] = "verdict: flagged"
        if flagged == "drop":
            is_dropped[index] = True
        elif suggested is None or suggested[index] in (-1, verdicts.labels[index]):
            is_dropped[index], why[index] = True, NO_OTHER
        else:
            new_labels[index] = suggested[index]
    changed = effects(decisions, verdicts.labels, names)
    is_dropped = np.where(changed.is_decided, changed.is_dropped, is_dropped)
    new_labels = np.where(changed.is_decided, changed.labels, new_labels)
    for index, decision in decisions.items():
        why[index] = f"decision of {decision.who}{f': {decision.note}' if decision.note else ''}"
    ids = [str(index) for index in range(len(verdicts))] if verdicts.ids is None else verdicts.ids
    return Changes(ids, names, verdicts.labels, new_labels, is_dropped, why, verdicts.scores)


@dataclass(frozen=True)
class Cleaning:
    """What is to be done to a scan's data: planned, not yet written."""

    folder: Folder
    source: Source
    changes: Changes
    flagged: Flagged

    @classmethod
    def of(cls, scan: str | Path, *, flagged: Flagged = "drop", data: str | Path | None = None) -> "Cleaning":
        """From a scan's verdicts and decisions; decisions overrule verdicts. `data`: where the data are now."""
        folder = Folder.open(scan)
        verdicts = folder.verdicts()
        changes = plan(verdicts, folder.decided(), flagged=flagged)
        source = folder.originals(verdicts, data)
        if data is not None and source.path is not None:
            consent.confirm(folder.path, source.path)  # naming the data is agreeing to read them
        return cls(folder, source, changes, flagged)

    def summary(self) -> dict[str, Any]:
        """What changes, in all and per class."""
        return self.changes.summary()

    def write(self, target: str | Path, *, is_linked: bool = False) -> Path:
        """Write the cleaned data and, beside them, a manifest, whose path is returned. Nothing is ever overwritten."""
        target, source = Path(target), self.source
        if not source.is_there or source.path is None:
            raise InputError(
                f"the data are not at {source.path or 'any path'}; say where they are with --data, or write a list of "
                "what stays with --indices"
            )
        self.folder.check_data(source.path)
        self._check_target(target, source.path)
        if is_linked and not source.has_files:
            raise InputError(f"--link is for class folders; {source.noun} is written anew")
        source.check(is_thorough=True)
        edit = self.changes.edit()
        target.parent.mkdir(parents=True, exist_ok=True)
        manifest = manifest_of(target)
        with replacing(manifest) as partial:  # before the data: where these are, it is, too
            partial.write_text(to_json(self.manifest(source.renamed(edit))) + "\n", encoding="utf-8")
        try:
            source.rewrite(target, edit, is_linked=is_linked)
        except BaseException:
            manifest.unlink()
            raise
        return manifest

    def write_indices(self, target: str | Path) -> None:
        """Write index, id and label of every sample that stays, as CSV: for data that are not files."""
        target, changes = Path(target), self.changes
        _check_free(target)
        kept = np.flatnonzero(~changes.is_dropped).tolist()
        rows = ((index, changes.ids[index], changes.class_names[changes.new_labels[index]]) for index in kept)
        write_rows(target, ("index", "id", "label"), rows)

    def manifest(self, names: Mapping[str, str]) -> dict[str, Any]:
        """What was done and why: a summary, and a row per changed sample; `names` are new names of files."""
        rows = [row | ({"new_id": names[row["id"]]} if row["id"] in names else {}) for row in self.changes.rows()]
        skipped = self.folder / "skipped.csv"  # images that the scan could not read; they stay as they are
        return {
            "scan": str(self.folder.path.resolve()),
            "source": str(self.source.path),
            "flagged": self.flagged,
            **self.summary(),
            "changes": rows,
            "skipped": [row for _, row in read_rows(skipped)] if skipped.is_file() else [],
        }

    def _check_target(self, target: Path, source: Path) -> None:
        if source.is_file() and target.suffix.lower() != source.suffix.lower():
            raise InputError(f"{source.name} is cleaned into the same format; name it {target.name}{source.suffix}")
        for path in self.source.targets(target):
            _check_free(path)
        if not _is_leftover(manifest_of(target)):
            _check_free(manifest_of(target))
        if source.is_dir() and target.resolve().is_relative_to(source.resolve()):
            raise InputError(f"{target} is inside the data, {source}; choose a path outside")


def manifest_of(target: Path) -> Path:
    """Where the list of changes is."""
    return target.with_name(f"{target.name}.manifest.json")


def _is_leftover(manifest: Path) -> bool:
    """Whether a manifest without data is one that a killed `clean` left."""
    try:
        found = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"scan", "source", "changes"} <= set(found)


def _check_free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} already exists; choose another path or delete it")
