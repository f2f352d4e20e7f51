"""Decisions that people made about a data set, trusted when it is scanned again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from undermargin.sources.samples import Samples
from undermargin.scans.decisions import Decision
from undermargin.errors import FolderError
from undermargin.scans.folder import Folder
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

Decided = Mapping[int, Decision]


def decisions_of(scan: str | Path, samples: Samples) -> dict[int, Decision]:
    """What was decided in an earlier scan of the same data."""
    folder = Folder.open(scan)
    if folder.read_json("config.json")["fingerprint"] != samples.fingerprint():
        raise FolderError(f"{scan} holds decisions about other data; they say nothing about these samples")
    return folder.decided()


def relabeled(samples: Samples, decided: Decided) -> Samples:
    """The samples with the labels that people gave them."""
    labels = samples.labels.copy()
    for index, decision in decided.items():
        if decision.label is not None:
            labels[index] = samples.class_names.index(decision.label)
    return replace(samples, labels=labels)


def trained_rows(num_samples: int, decided: Decided) -> npt.NDArray[np.int64] | None:
    """Who is trained on: all but the dropped; None for everybody."""
    dropped = dropped_by(decided)
    return np.delete(np.arange(num_samples), dropped) if dropped else None


def dropped_by(decided: Decided) -> list[int]:
    """Who is left out of the training."""
    return [index for index, decision in decided.items() if decision.action == "drop"]


def overruled(verdicts: Verdicts, decided: Decided, labels: npt.NDArray[np.int64] | None) -> Verdicts:
    """The verdicts with people's word first: dropped samples are flagged, all others they looked at are kept.

    `labels` are those that the data set has: the trained ones, with relabels in them, become suggestions.
    """
    if not decided:
        return verdicts
    codes = verdicts.codes.copy()
    for index, decision in decided.items():
        codes[index] = FLAGGED if decision.action == "drop" else KEPT
    suggested = verdicts.suggested_labels
    if suggested is not None and verdicts.labels is not None:
        suggested = suggested.copy()
        kept, dropped = [index for index in decided if codes[index] == KEPT], dropped_by(decided)
        suggested[kept] = verdicts.labels[kept]
        suggested[dropped] = -1
    note = f"{len(decided)} samples follow decisions that were made in review"
    about = verdicts.about | {"notes": [*verdicts.about.get("notes", []), note]}
    return replace(verdicts, codes=codes, labels=labels, suggested_labels=suggested, about=about)
