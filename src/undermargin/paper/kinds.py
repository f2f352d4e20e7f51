"""What can be done in a cell: from prepared data to numbers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin.cutoffs import by_percentile
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import Prepared, lesson
from undermargin.recipes import Fitted
from undermargin.recipes.aum import Aum
from undermargin.recipes.lesson import trained_without
from undermargin.storage.locks import only_one
from undermargin.tracking.run import Run
from undermargin.training.engine import Budget
from undermargin.training.objective import Objective, Step
from undermargin.verdicts import metrics
from undermargin.verdicts.identify import identify
from undermargin.verdicts.record import Verdicts

Arrays = dict[str, npt.NDArray[Any]]

# the identifiers of the paper's precision and recall figure, and ours: a score and a cutoff
OF_FOLDS = {"aum": ("aum", "paper"), "aum, auto": ("aum", "auto")}
OF_PLAIN_TRAINING = {
    "bmm": ("last_loss", "beta"),
    "gmm": ("last_loss", "gaussian"),
}  # as long, without threshold samples
IDENTIFIERS = OF_FOLDS | OF_PLAIN_TRAINING
SCORES = ("aum", "last_margin", "last_loss", "mean_loss")
BINS = 60
TURNS = 5  # epochs that are timed
LOWEST = 24  # samples in a picture of the most suspicious
LABEL, TRUE_LABEL = 5, 2  # whose logits are kept: in CIFAR-10, dogs, and birds that are labeled so
WATCHED = 400  # dogs at most, of whom the easy and the hard ones are chosen afterwards


@dataclass(frozen=True)
class Outcome:
    """What a cell leaves: numbers for its line in the store, arrays for a file beside."""

    numbers: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a cell's trainings leave their checkpoints."""

    own: Path
    folds: Path  # shared by all cells with the same two folds


def fit(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Train as a recipe says; test error, and how well it found the flipped labels."""
    taught = lesson(cell, prepared, place.own, SCORES if cell.recipe == "standard" else ("aum",))
    if cell.recipe != "aum":
        return Outcome(_fitted(cell.method.fit(taught), prepared))
    verdicts = _verdicts(cell, _runs(cell, prepared, place)["aum"])
    return Outcome(_fitted(trained_without(taught, "aum", verdicts), prepared), _arrays(verdicts, prepared))


def identification(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """No last training: precision and recall of every identifier, histograms, the most suspicious samples."""
    runs, plain = _runs(cell, prepared, place), _plain(cell, prepared, place)
    verdicts = _verdicts(cell, runs["aum"])
    is_flipped = prepared.is_flipped
    numbers: dict[str, Any] = {
        "identifiers": {
            name: metrics.identification(identify(found[score], cutoff), is_flipped)
            for found, identifiers in ((runs, OF_FOLDS), (plain, OF_PLAIN_TRAINING))
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
    return Outcome(numbers, _arrays(verdicts, prepared))


def removal(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Test error after removing a share of the samples, by their AUM or by lot."""
    num_train = len(prepared.true_labels)
    if cell.option("ranking") == "random":
        ranking = np.random.default_rng(cell.seed).permutation(num_train)
    else:
        ranking = _verdicts(cell, _runs(cell, prepared, place)["aum"]).scores.argsort()
    kept = np.sort(ranking[round(cell.option("share") * num_train) :])
    training, _ = lesson(cell, prepared, place.own).on_part(kept).train()
    predictions = training.predict(prepared.test_rows).argmax(1)
    return Outcome({"test_error": metrics.error(predictions, prepared.labels[prepared.test_rows])})


def trajectories(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Logits of clean and mislabeled samples of one class at every epoch, as long as a fold is trained."""
    num_train = len(prepared.true_labels)
    labels = prepared.labels[:num_train]
    mistaken = np.bincount(prepared.true_labels[(labels == LABEL) & prepared.is_flipped], minlength=TRUE_LABEL + 1)
    true_label = TRUE_LABEL if mistaken[TRUE_LABEL] else int(mistaken.argmax())  # a handful of samples may lack them
    groups = [(labels == LABEL) & (prepared.true_labels == true) for true in (LABEL, true_label)]
    watched = np.concatenate([np.flatnonzero(group)[:WATCHED] for group in groups])
    taught = lesson(cell, prepared, place.own)
    taught = replace(taught, budget=_aum(cell).budget(taught.budget))
    record = Record(watched, len(prepared.labels), len(prepared.class_names), taught.budget.epochs)
    _, tracker = taught.train("trajectories", record)
    arrays = {
        "logits": record.logits.numpy().astype(np.float32),  # (epochs, samples, classes)
        "aum": tracker.scores("aum")[watched],
        "is_flipped": prepared.is_flipped[watched],
        "true_labels": prepared.true_labels[watched],
    }
    return Outcome({"label": prepared.class_names[LABEL], "true_label": prepared.class_names[true_label]}, arrays)


def architecture(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Every sample's scores under one network, and its loss when it was held out, to be compared between networks."""
    taught = lesson(cell, prepared, place.own, SCORES)
    taught = replace(taught, budget=_aum(cell).budget(taught.budget))
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
    method = _aum(cell)
    fold = method.folds(taught)[0]
    # both without the threshold samples' right labels, in as many steps: they differ by the extra class alone
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

    They take turns, so that a busy moment of the machine hits both.
    """
    taught = replace(lesson(cell, prepared, place.own), folder=None)
    method = _aum(cell)
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
        "identification": identification,
        "removal": removal,
        "trajectories": trajectories,
        "architecture": architecture,
        "extra class": extra_class,
        "cost": cost,
    }
)


class Record(Objective):
    """Cross-entropy, while the logits of some samples are kept: (epochs, samples, classes)."""

    def __init__(self, watched: npt.NDArray[np.int64], num_samples: int, num_classes: int, num_epochs: int) -> None:
        self.places = torch.full((num_samples,), -1)
        self.places[torch.from_numpy(watched)] = torch.arange(len(watched))
        self.logits = torch.zeros(num_epochs, len(watched), num_classes)

    def loss(self, step: Step) -> torch.Tensor:
        """Keep and go on."""
        places = self.places[step.indices.cpu()]
        self.logits[step.epoch, places[places >= 0]] = step.outputs.detach().cpu()[places >= 0]
        return super().loss(step)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The logits."""
        return {"logits": self.logits}

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The logits."""
        self.logits = tensors["logits"]


def _aum(cell: Cell) -> Aum:
    share = cell.option("percentile")
    return Aum(
        cutoff=None if share is None else by_percentile(share),
        batch_size=cell.study.fold_batch_size,
        is_whole=cell.option("is_whole", False),
    )


def _verdicts(cell: Cell, runs: list[Run]) -> Verdicts:
    return _aum(cell).verdicts(runs)


def _runs(cell: Cell, prepared: Prepared, place: Place) -> dict[str, list[Run]]:
    """Of every score, those of the two folds; cells that share folds do not train them twice."""
    with only_one(place.folds / "lock"):
        return _aum(cell).runs(lesson(cell, prepared, place.folds), SCORES)


def _arrays(verdicts: Verdicts, prepared: Prepared) -> Arrays:
    flagged = verdicts.flagged  # most suspicious first
    files = {} if prepared.names is None else {"files": np.array([prepared.names[row] for row in flagged], str)}
    return {
        "judged": prepared.indices,
        "aum": verdicts.scores.astype(np.float32),  # of the judged
        "flagged": prepared.indices[flagged],
        "labels": np.array(prepared.class_names)[prepared.labels[flagged]],
        **files,
    }


def loss_budget(cell: Cell) -> Budget:
    """Of the training whose losses BMM and GMM read: as long as a fold's, in the batches of all other trainings."""
    budget = cell.study.budget
    return replace(_aum(cell).budget(budget), batch_size=budget.batch_size)


def _plain(cell: Cell, prepared: Prepared, place: Place) -> dict[str, list[Run]]:
    """One training with nobody's label changed: what the losses are read from."""
    folder = place.folds / "plain"
    taught = lesson(cell, prepared, folder, SCORES)
    taught = replace(taught, budget=loss_budget(cell))
    with only_one(folder / "lock"):
        _, tracker = taught.train("plain")
    labels = taught.labels[taught.rows]
    return {name: [Run(taught.own(tracker.scores(name)), labels=labels, score=name)] for name in SCORES}


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
    return numbers
