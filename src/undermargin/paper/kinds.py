"""What can be done in a cell: from prepared data to numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin import metrics
from undermargin.cutoffs import by_percentile
from undermargin.files import only_one
from undermargin.identify import identify
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import Prepared, lesson
from undermargin.recipes import RECIPES, Fitted, Lesson
from undermargin.recipes.aum import Aum
from undermargin.recipes.lesson import seconds as training_seconds
from undermargin.recipes.lesson import trained_without
from undermargin.run import Run
from undermargin.training.objective import Objective, Step
from undermargin.verdicts import Verdicts

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
LOWEST = 24  # samples in a picture of the most suspicious
LABEL, TRUE_LABEL = 5, 2  # whose logits are kept: in CIFAR-10, dogs, and birds that are labeled so
WATCHED = 400  # dogs at most, of whom the easy and the hard ones are chosen afterwards


@dataclass(frozen=True)
class Outcome:
    """What a cell leaves: numbers for its line in the store, arrays for a file beside."""

    numbers: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)  # seconds


@dataclass(frozen=True)
class Place:
    """Where a cell's trainings leave their checkpoints."""

    own: Path
    folds: Path  # shared by all cells with the same two folds


def fit(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Train as a recipe says; test error, and how well it found the flipped labels."""
    taught = lesson(cell, prepared, place.own, SCORES if cell.recipe == "standard" else ("aum",))
    if cell.recipe != "aum":
        fitted = RECIPES[cell.recipe].make().fit(taught)
        return Outcome(_fitted(fitted, prepared), timings={"training": training_seconds(place.own)})
    found = _identified(cell, prepared, place)
    fitted = trained_without(taught, "aum", _verdicts(cell, found.runs["aum"]))
    return Outcome(found.numbers | _fitted(fitted, prepared), found.arrays, found.timings)


def identification(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """The two folds alone: precision and recall of every identifier, histograms, the most suspicious samples."""
    found = _identified(cell, prepared, place)
    return Outcome(found.numbers, found.arrays, found.timings)


def removal(cell: Cell, prepared: Prepared, place: Place) -> Outcome:
    """Test error after removing a share of the samples, by their AUM or by lot."""
    num_train = len(prepared.true_labels)
    if cell.option("ranking") == "random":
        ranking = np.random.default_rng(cell.seed).permutation(num_train)
    else:
        ranking = _verdicts(cell, _identified(cell, prepared, place).runs["aum"]).scores.argsort()
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
    errors = {}
    plain = replace(taught, budget=method.budget(taught.budget))
    fold = method.folds(taught)[0]
    worn = prepared.labels.copy()
    worn[taught.rows] = fold.labels
    # both without the threshold samples' right labels, so that they differ by the extra class alone
    variants = {
        "without": replace(plain, rows=taught.rows[~fold.is_threshold]),
        "with": replace(plain, labels=worn, num_outputs=fold.num_outputs),
    }
    for name, variant in variants.items():
        training, _ = variant.train(name)
        predictions = training.predict(prepared.test_rows)[:, : taught.num_classes].argmax(1)
        errors[name] = metrics.error(predictions, prepared.labels[prepared.test_rows])
    return Outcome({"test_error": errors})


KINDS: Mapping[str, Callable[[Cell, Prepared, Place], Outcome]] = MappingProxyType(
    {
        "fit": fit,
        "identification": identification,
        "removal": removal,
        "trajectories": trajectories,
        "architecture": architecture,
        "extra class": extra_class,
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


@dataclass(frozen=True)
class Identified:
    """The runs of two folds, and what follows from them."""

    runs: dict[str, list[Run]]
    numbers: dict[str, Any]
    arrays: Arrays
    timings: dict[str, float]


def _aum(cell: Cell) -> Aum:
    share = cell.option("percentile")
    return Aum(
        cutoff=None if share is None else by_percentile(share),
        batch_size=cell.study.fold_batch_size,
        is_whole=cell.option("is_whole", False),
    )


def _verdicts(cell: Cell, runs: list[Run]) -> Verdicts:
    return _aum(cell).verdicts(runs)


def _identified(cell: Cell, prepared: Prepared, place: Place) -> Identified:
    taught: Lesson = lesson(cell, prepared, place.folds)
    with only_one(place.folds / "lock"):  # cells that share folds do not train them twice
        runs = _aum(cell).runs(taught, SCORES)
        timings = {"folds": training_seconds(place.folds)}
        plain = _plain(cell, prepared, place.folds / "plain")
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
    arrays: Arrays = {"flagged": prepared.indices[verdicts.is_flagged], "aum": verdicts.scores.astype(np.float32)}
    return Identified(runs, numbers, arrays, timings)


def _plain(cell: Cell, prepared: Prepared, folder: Path) -> dict[str, list[Run]]:
    """One training as long as a fold's, with nobody's label changed: what the losses are read from."""
    taught = lesson(cell, prepared, folder, SCORES)
    taught = replace(taught, budget=_aum(cell).budget(taught.budget))
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
