"""What can be done in a cell: from prepared data to numbers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin.paper.cell import Cell
from undermargin.paper.prepared import Prepared, lesson
from undermargin.paper.record import Record
from undermargin.paper.shared import OF_FOLDS, OF_PLAIN, SCORES, Place, aum, fold_runs, identifying_runs, plain_runs
from undermargin.recipes import Fitted
from undermargin.recipes.lesson import trained_without
from undermargin.tracking.run import Run
from undermargin.verdicts import metrics
from undermargin.verdicts.identify import identify
from undermargin.verdicts.record import Verdicts

Arrays = dict[str, npt.NDArray[Any]]

BINS = 60
TURNS = 5  # epochs that are timed
LOWEST = 24  # most suspicious samples, shown as a grid of images
LABEL, TRUE_LABEL = 5, 2  # trajectories are of samples with this label: in CIFAR-10 dogs, and birds labeled dog
WATCHED = 400  # samples of each group at most; the easy and the hard ones are chosen among them


@dataclass(frozen=True)
class Outcome:
    """What a cell leaves: numbers for its line in the store, and arrays that figures or lists are made of."""

    numbers: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)


def fit(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Train as a recipe says: test error, and how well it found the flipped labels."""
    taught = lesson(cell, prepared, place.own, SCORES if cell.recipe == "standard" else ("aum",))
    if cell.recipe != "aum":
        return Outcome(_fitted(cell.method.fit(taught), prepared))
    verdicts = _verdicts(cell, fold_runs(cell, prepared, place)["aum"])
    return Outcome(_fitted(trained_without(taught, "aum", verdicts), prepared))


def cleaned(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Train without what an identifier, a score with a cutoff, flags: the same numbers as `fit`."""
    score = cell.option("score")
    verdicts = identify(identifying_runs(cell, prepared, place)[score], cell.option("cutoff"))
    taught = lesson(cell, prepared, place.own)
    return Outcome(_fitted(trained_without(taught, score, verdicts), prepared))


def identification(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """No last training: precision and recall of every identifier, a histogram, the most suspicious samples."""
    runs, plain = fold_runs(cell, prepared, place), plain_runs(cell, prepared, place)
    verdicts = _verdicts(cell, runs["aum"])
    is_flipped = prepared.is_flipped
    numbers: dict[str, Any] = {
        "identifiers": {
            name: metrics.identification(identify(found[score], cutoff), is_flipped)
            for found, identifiers in ((runs, OF_FOLDS), (plain, OF_PLAIN))
            for name, (score, cutoff) in identifiers.items()
        },
        "average_precision": {
            name: metrics.average_precision(-identify(runs[name], "gaussian").scores, is_flipped) for name in SCORES
        },
        "removed": float(verdicts.is_flagged.mean()),
        "histogram": _histogram(runs["aum"][0], is_flipped),
        "cutoffs": verdicts.about["cutoff"]["values"],
        "lowest": prepared.indices[verdicts.order[:LOWEST]].tolist(),
    }
    # flagged samples are listed where labels are as published: of labels that we flipped they tell nothing
    return Outcome(numbers, _listed(verdicts, prepared) if cell.noise == "none" else {})


def removal(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Test error after removing a share of the samples: those of the lowest AUM, or random ones."""
    num_train = len(prepared.true_labels)
    if cell.option("ranking") == "random":
        ranking = np.random.default_rng(cell.seed).permutation(num_train)
    else:
        ranking = _verdicts(cell, fold_runs(cell, prepared, place)["aum"]).scores.argsort()
    kept = np.sort(ranking[round(cell.option("share") * num_train) :])
    training, _ = lesson(cell, prepared, place.own).on_part(kept).train()
    predictions = training.predict(prepared.test_rows).argmax(1)
    return Outcome({"test_error": metrics.error(predictions, prepared.labels[prepared.test_rows])})


def trajectories(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Logits of clean and mislabeled samples of one class at every epoch, in a training as long as a fold's."""
    num_train = len(prepared.true_labels)
    labels = prepared.labels[:num_train]
    mistaken = np.bincount(prepared.true_labels[(labels == LABEL) & prepared.is_flipped], minlength=TRUE_LABEL + 1)
    true_label = TRUE_LABEL if mistaken[TRUE_LABEL] else int(mistaken.argmax())  # a small set may have none of these
    groups = [(labels == LABEL) & (prepared.true_labels == true) for true in (LABEL, true_label)]
    watched = np.concatenate([np.flatnonzero(group)[:WATCHED] for group in groups])
    taught = lesson(cell, prepared, place.own)
    taught = replace(taught, budget=aum(cell).budget(taught.budget))
    record = Record(place.own / "trajectories.logits", taught)
    _, tracker = taught.train("trajectories", record)
    arrays = {
        "logits": record.logits[:, watched].float().numpy(),  # (epochs, samples, classes)
        "aum": tracker.scores("aum")[watched],
        "is_flipped": prepared.is_flipped[watched],
        "true_labels": prepared.true_labels[watched],
    }
    return Outcome({"label": prepared.class_names[LABEL], "true_label": prepared.class_names[true_label]}, arrays)


def architecture(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Every sample's scores under one network, and its loss when it was held out, to be compared between networks."""
    taught = lesson(cell, prepared, place.own, SCORES)
    taught = replace(taught, budget=aum(cell).budget(taught.budget))
    _, tracker = taught.train("whole")
    arrays: Arrays = {name: taught.own(tracker.scores(name)) for name in SCORES}
    held_out = np.zeros(len(taught.rows))
    halves = np.array_split(np.random.default_rng(cell.seed).permutation(taught.rows), 2)
    for number, (shown, hidden) in enumerate((halves, halves[::-1])):
        training, _ = replace(taught, rows=np.sort(shown)).train(f"half{number}")
        logits = torch.from_numpy(training.predict(hidden))
        losses = torch.nn.functional.cross_entropy(logits, torch.from_numpy(taught.labels[hidden]), reduction="none")
        held_out[hidden] = -losses.numpy()
    arrays["held_out_loss"] = held_out
    is_flipped = prepared.is_flipped
    precisions = {name: metrics.average_precision(-values, is_flipped) for name, values in arrays.items()}
    return Outcome({"average_precision": precisions}, {name: v.astype(np.float32) for name, v in arrays.items()})


def extra_class(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Does the extra label disturb the others? Test error with threshold samples and without, before the first drop."""
    taught = lesson(cell, prepared, place.own)
    method = aum(cell)
    fold = method.folds(taught)[0]
    # both without the threshold samples' right labels, in the same number of steps: only the extra class differs
    rest = taught.rows[~fold.is_threshold]
    variants = {
        "without": replace(taught, budget=method.budget(taught.budget)).on_part(rest),
        "with": method.on_fold(taught, fold),
    }
    errors = {}
    for name, variant in variants.items():
        training, _ = variant.train(name)
        predictions = training.predict(prepared.test_rows)[:, : taught.num_classes].argmax(1)
        errors[name] = metrics.error(predictions, prepared.labels[prepared.test_rows])
    return Outcome({"test_error": errors})


def cost(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Seconds that one whole training takes and that two folds take, from single epochs of both.

    They take turns, so that a busy moment of the machine affects both.
    """
    taught = replace(lesson(cell, prepared, place.own), folder=None)
    method = aum(cell)
    folds = method.folds(taught)
    variants = {"training": taught, "folds": method.on_fold(taught, folds[0])}
    epochs = {"training": taught.budget.epochs, "folds": len(folds) * variants["folds"].budget.epochs}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(TURNS):
        for name, variant in variants.items():
            started = time.perf_counter()
            variant.shortened(1).train(name)
            seconds[name].append(time.perf_counter() - started)
    return Outcome({"seconds": {name: epochs[name] * float(np.median(seconds[name])) for name in epochs}})


KINDS: Mapping[str, Callable[[Cell, Prepared, Place], Outcome]] = MappingProxyType(
    {
        "fit": fit,
        "cleaned": cleaned,
        "identification": identification,
        "removal": removal,
        "trajectories": trajectories,
        "architecture": architecture,
        "extra class": extra_class,
        "cost": cost,
    }
)


def _verdicts(cell: Cell, runs: list[Run]) -> Verdicts:
    return aum(cell).verdicts(runs)


def _listed(verdicts: Verdicts, prepared: Prepared) -> Arrays:
    flagged = verdicts.flagged  # most suspicious first
    files = {} if prepared.names is None else {"files": np.array([prepared.names[row] for row in flagged], str)}
    return {
        "judged": prepared.indices,
        "aum": verdicts.scores.astype(np.float32),  # of the judged
        "flagged": prepared.indices[flagged],
        "labels": np.array(prepared.class_names)[prepared.labels[flagged]],
        **files,
    }


def _histogram(run: Run, is_flipped: npt.NDArray[np.bool_]) -> dict[str, list[float]]:
    edges = np.histogram_bin_edges(run.scores, BINS)
    groups = {
        "clean": run.judged & ~is_flipped,
        "mislabeled": run.judged & is_flipped,
        "threshold": run.is_threshold,
    }
    counts = {name: np.histogram(run.scores[group], edges)[0].tolist() for name, group in groups.items()}
    return {"edges": np.round(edges, 4).tolist(), **counts}


def _fitted(fitted: Fitted, prepared: Prepared) -> dict[str, Any]:
    rows, is_flipped = prepared.test_rows, prepared.is_flipped
    predictions = fitted.predict(rows).argmax(1)
    numbers: dict[str, Any] = {"test_error": metrics.error(predictions, prepared.labels[rows])}
    if fitted.notes:
        numbers["notes"] = list(fitted.notes)
    if fitted.verdicts is not None:
        numbers["verdicts"] = metrics.identification(fitted.verdicts, is_flipped)
    watched = {name: values for name, values in fitted.scores.items() if not np.isnan(values).any()}
    numbers["scores"] = {name: metrics.average_precision(-values, is_flipped) for name, values in watched.items()}
    if is_flipped.any():
        numbers["memorized"] = _memorized(fitted, prepared)
    return numbers


def _memorized(fitted: Fitted, prepared: Prepared) -> dict[str, float]:
    """What the final network says of the training samples: of the clean and of the flipped ones, the share predicted
    as their label, and of the flipped ones that predicted as the true label."""
    is_flipped, true_labels = prepared.is_flipped, prepared.true_labels
    train = np.arange(len(true_labels))
    predicted = fitted.predict(train).argmax(1)
    is_label = predicted == prepared.labels[train]
    return {
        "clean": float(is_label[~is_flipped].mean()),
        "flipped": float(is_label[is_flipped].mean()),
        "corrected": float((predicted == true_labels)[is_flipped].mean()),
    }
