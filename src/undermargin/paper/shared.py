"""Trainings that several cells read: AUM's two folds, and the one whose losses the mixtures read.

Each is run once for all cells with the same data, noise, seed and study, and its logits are kept. Cells of a later
commit use them too: the scores are then computed by that commit's tracker, and the result names both commits.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs import by_percentile
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import Prepared, lesson
from undermargin.paper.record import Record
from undermargin.procedure import NUM_FOLDS, Procedure, trainings
from undermargin.recipes import Lesson
from undermargin.recipes.aum import Aum
from undermargin.storage.files import replacing
from undermargin.storage.locks import only_one
from undermargin.tracking.run import Run
from undermargin.training.engine import Budget

Runs = dict[str, list[Run]]  # by score, one per training

SCORES = ("aum", "last_margin", "last_loss", "mean_loss")
DEFAULT = Procedure.default.cutoff  # of scan's verdicts

# identifiers: a score and a cutoff. The paper's, and the one that scan uses
OF_FOLDS = {"aum": ("aum", "paper"), "aum, auto": ("aum", "auto"), f"aum, {DEFAULT}": ("aum", DEFAULT)}
OF_PLAIN = {"bmm": ("last_loss", "beta"), "gmm": ("last_loss", "gaussian")}
IDENTIFIERS = OF_FOLDS | OF_PLAIN

FOLDS = tuple(f"fold{number}" for number in range(NUM_FOLDS))
PLAIN = ("plain",)


@dataclass(frozen=True)
class Place:
    """Where a cell's trainings leave their files."""

    own: Path  # checkpoints of this cell alone
    folds: Path  # checkpoints of the shared trainings, by this commit
    records: Path  # logits of the shared trainings, by whichever commit ran them first
    commit: str = ""


def stages(cell: Cell) -> tuple[str, ...]:
    """The names of the shared trainings that a cell reads."""
    if cell.kind == "identification":
        return FOLDS + PLAIN
    if cell.kind == "cleaned":
        return PLAIN if _is_of_plain(cell) else FOLDS
    reads_folds = cell.kind == "fit" and cell.recipe == "aum"
    return FOLDS if reads_folds or cell.option("ranking") == "aum" else ()


def identifying_runs(cell: Cell, prepared: Prepared, place: Place) -> Runs:
    """The runs that the identifier of a cell judges by."""
    return (plain_runs if _is_of_plain(cell) else fold_runs)(cell, prepared, place)


def _is_of_plain(cell: Cell) -> bool:
    return cell.option("score") in {score for score, _ in OF_PLAIN.values()}


def aum(cell: Cell) -> Aum:
    """The procedure of a cell, with its percentile and its folds' batch size."""
    share = cell.option("percentile")
    return Aum(
        cutoff=None if share is None else by_percentile(share),
        batch_size=cell.study.fold_batch_size,
        is_whole=cell.option("is_whole", False),
    )


def fold_runs(cell: Cell, prepared: Prepared, place: Place) -> Runs:
    """For every score, the runs of the two folds."""
    method, taught = aum(cell), lesson(cell, prepared, place.folds, SCORES)
    labels = taught.labels[taught.rows]
    runs: Runs = {name: [] for name in SCORES}
    for fold, seed in trainings(labels, taught.num_classes, seed=taught.seed, procedure=method.procedure):
        found = _watched(replace(method.on_fold(taught, fold), seed=seed), FOLDS[fold.number], place)
        for name, scores in found.scores.items():
            run = Run(
                scores,
                is_threshold=fold.is_threshold,
                labels=labels,
                fold=fold.number,
                score=name,
                probabilities=found.probabilities,
            )
            runs[name].append(run)
    return runs


def plain_runs(cell: Cell, prepared: Prepared, place: Place) -> Runs:
    """For every score, the run of one training in which no label is changed."""
    taught = replace(lesson(cell, prepared, place.folds / "plain", SCORES), budget=loss_budget(cell))
    labels = taught.labels[taught.rows]
    found = _watched(taught, *PLAIN, place)
    return {name: [Run(scores, labels=labels, score=name)] for name, scores in found.scores.items()}


def loss_budget(cell: Cell) -> Budget:
    """Of the training whose losses BMM and GMM read: as long as a fold, with the batch size of other trainings."""
    budget = cell.study.budget
    return replace(aum(cell).budget(budget), batch_size=budget.batch_size)


class Watched(NamedTuple):
    """What a tracker saw of a shared training, of the training samples alone."""

    scores: Mapping[str, npt.NDArray[np.float64]]  # (samples,) each
    probabilities: npt.NDArray[np.float64] | None  # (samples, classes), of trainings with the extra output


def _watched(taught: Lesson, stage: str, place: Place) -> Watched:
    """What the tracker saw of a shared training, which is run unless its logits are there."""
    place.records.mkdir(parents=True, exist_ok=True)
    with only_one(place.records / f"{stage}.lock"):  # a cell beside this one may want the same
        if not Record.fits(taught):
            _, tracker = taught.train(stage)
            shares = taught.own(tracker.probabilities()) if tracker.num_probabilities else None
            return Watched({name: taught.own(tracker.scores(name)) for name in SCORES}, shares)
        path = place.records / f"{stage}.logits"
        if finished(place, stage) is None:
            started = time.perf_counter()
            taught.train(stage, Record(path, taught))
            about = {"commit": place.commit, "seconds": round(time.perf_counter() - started, 1)}
            with replacing(_note(place, stage)) as partial:  # written last: then the logits are whole
                partial.write_text(json.dumps(about))
        tracker = Record(path, taught, is_whole=True).replayed()
    shares = tracker.probabilities().astype(np.float64) if tracker.num_probabilities else None
    return Watched({name: np.asarray(tracker.scores(name), dtype=np.float64) for name in SCORES}, shares)


def finished(place: Place, stage: str) -> dict[str, Any] | None:
    """The commit that ran a shared training and the seconds it took; None: its logits are not there."""
    note = _note(place, stage)
    return dict(json.loads(note.read_text())) if note.is_file() else None


def _note(place: Place, stage: str) -> Path:
    return place.records / f"{stage}.json"
