"""The procedure on a data set: load, train both folds while a tracker watches, judge, leave a folder.

Killed at any moment and started again with the same words, it goes on where it stopped and ends with the same
verdicts: every epoch depends on the seed and its number alone, and finished folds are not trained again.
"""

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import undermargin
from undermargin.data.samples import Reading, Samples
from undermargin.data.source import load
from undermargin.errors import FolderError
from undermargin.files import append_line
from undermargin.folder import Folder
from undermargin.folds import Fold, Procedure, folds, seeds
from undermargin.identify import identify
from undermargin.run import Run
from undermargin.tracker import Tracker
from undermargin.training.checkpoint import load_checkpoint, save_checkpoint
from undermargin.training.network import Training, build
from undermargin.training.plan import Plan, plan
from undermargin.verdicts import Verdicts

CHECKPOINT_SECONDS = 1.0  # at least this long between two checkpoints


@dataclass(frozen=True)
class Progress:
    """Where a scan is: after how many of how many epochs, of which fold, and how fast."""

    fold: int
    epoch: int  # ended so far, in this fold
    epochs: int  # in each fold
    samples_per_second: float


@dataclass(frozen=True)
class Job:
    """What a user's own training function gets: train on `dataset`, show every step to `tracker`."""

    dataset: Any  # (x, label, index): the fold's labels, threshold samples included
    num_outputs: int
    fold: Fold
    seed: int
    folder: Path
    tracker: Tracker


def scan(
    source: Any,
    out: str | Path,
    *,
    label: str | None = None,
    text: str | None = None,
    image: str | None = None,
    where: str | None = None,
    procedure: Procedure = Procedure.default,
    cutoff: str | float = "auto",
    epochs: int | None = None,
    seed: int = 0,
    train: Callable[[Job], None] | None = None,
    on_start: Callable[[Samples, Plan], None] = lambda samples, chosen: None,  # noqa: ARG005
    on_epoch: Callable[[Progress], None] = lambda progress: None,  # noqa: ARG005
) -> Verdicts:
    """Which labels of a data set look wrong. Leaves a scan folder in `out`.

    `source` is a path (class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy, a Hugging Face folder) or data in
    memory: (inputs, labels), a frame, a table, a data set. `train` is a training of your own, called with a `Job` for
    each fold; otherwise a network is chosen from the data's kind and size.
    """
    started = time.perf_counter()
    samples = load(source, Reading(label=label, text=text, image=image, where=where))
    chosen = plan(samples, epochs=epochs)
    folder = Folder(out)
    with folder.locked():
        _claim(folder, samples, chosen, procedure, seed, is_own_training=train is not None)
        _write_skipped(folder, samples)
        on_start(samples, chosen)
        both = folds(samples.labels, samples.num_classes, seed=seed, procedure=procedure)
        runs = []
        for fold, fold_seed in zip(both, seeds(procedure, seed), strict=True):
            fold_run = _finished(folder, fold)
            if fold_run is None:
                tracker = Tracker(len(samples), skip_epochs=procedure.skip_epochs, suggest=fold.num_classes)
                if train is None:
                    _train_fold(folder, chosen, fold, fold_seed, tracker, on_epoch)
                else:
                    train(_job(samples, fold, fold_seed, folder, tracker))
                fold_run = tracker.run(fold, ids=samples.ids, class_names=samples.class_names)
                fold_run.save(folder.fold(fold.number) / "scores.parquet")
            runs.append(fold_run)
        verdicts = identify(runs, cutoff)
        seconds = time.perf_counter() - started
        folder.save_verdicts(verdicts, **_about(samples, chosen, seconds))
        folder.write_manifest()
    return verdicts


def _finished(folder: Folder, fold: Fold) -> Run | None:
    path = folder.fold(fold.number) / "scores.parquet"
    return Run.load(path) if path.is_file() else None


def _train_fold(
    folder: Folder, chosen: Plan, fold: Fold, seed: int, tracker: Tracker, on_epoch: Callable[[Progress], None]
) -> None:
    path = folder.fold(fold.number)
    model = build(chosen.make_model, fold.num_outputs, seed=seed)
    labels = torch.from_numpy(fold.labels)
    training = Training(model, chosen.inputs, labels, chosen.budget, seed=seed, augment=chosen.augment)
    checkpoint = path / "checkpoint.safetensors"
    if checkpoint.is_file():
        load_checkpoint(checkpoint, training, tracker)
    saved = time.monotonic()
    for epoch in range(tracker.epoch, chosen.budget.epochs):
        started = time.perf_counter()
        training.run_epoch(epoch, tracker.update)
        tracker.end_epoch()
        seconds = time.perf_counter() - started
        append_line(path / "log.jsonl", {"epoch": epoch, "seconds": round(seconds, 3)})
        if time.monotonic() - saved >= CHECKPOINT_SECONDS or tracker.epoch == chosen.budget.epochs:
            save_checkpoint(checkpoint, training, tracker)
            saved = time.monotonic()
        on_epoch(Progress(fold.number, tracker.epoch, chosen.budget.epochs, len(labels) / seconds))


def _job(samples: Samples, fold: Fold, seed: int, folder: Folder, tracker: Tracker) -> Job:
    from undermargin.data.views import IndexedDataset, RelabeledDataset

    pairs = list(zip(samples.inputs, samples.labels.tolist(), strict=True))
    dataset = IndexedDataset(RelabeledDataset(pairs, fold.labels.tolist()))
    return Job(dataset, fold.num_outputs, fold, seed, folder.fold(fold.number), tracker)


def _claim(
    folder: Folder, samples: Samples, chosen: Plan, procedure: Procedure, seed: int, *, is_own_training: bool
) -> None:
    """Write what is asked, or make sure that what the folder holds was asked in the same words."""
    config = {
        "source": samples.found,
        "kind": samples.kind,
        "num_samples": len(samples),
        "class_names": samples.class_names,
        "fingerprint": samples.fingerprint(),
        "model": "the user's own" if is_own_training else chosen.model,
        "budget": asdict(chosen.budget),
        "procedure": asdict(procedure),
        "seed": seed,
        **environment(),
    }
    if (folder / "config.json").is_file():
        _compare(folder.read_json("config.json"), config, folder)
    else:
        folder.write_json("config.json", config)


def environment() -> dict[str, Any]:
    """What else the numbers depend on: versions and the number of threads."""
    return {
        "versions": {
            "undermargin": undermargin.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "num_threads": torch.get_num_threads(),
    }


def _compare(before: dict[str, Any], now: dict[str, Any], folder: Folder) -> None:
    from undermargin.jsonable import to_json

    if before.get("fingerprint") != now["fingerprint"]:
        raise FolderError(f"{folder.path} holds a scan of other data; choose another folder with --out")
    for name in ("model", "budget", "procedure", "seed", "versions", "num_threads"):
        if to_json(before.get(name)) != to_json(now[name]):
            raise FolderError(
                f"{folder.path} holds a scan with another {name}: {to_json(before.get(name), indent=None)} instead of "
                f"{to_json(now[name], indent=None)}; choose another folder with --out, or take the old one away"
            )


def _write_skipped(folder: Folder, samples: Samples) -> None:
    import csv

    import pyarrow as pa

    from undermargin.cells import neutralise
    from undermargin.files import replacing

    if samples.skipped:
        ids, reasons = zip(*samples.skipped, strict=True)
        columns = neutralise(pa.table({"id": ids, "reason": reasons})).to_pydict()
        with replacing(folder / "skipped.csv") as path, path.open("w", newline="") as file:
            csv.writer(file).writerows([tuple(columns), *zip(*columns.values(), strict=True)])


def _about(samples: Samples, chosen: Plan, seconds: float) -> dict[str, Any]:
    observed = 2 * chosen.budget.epochs * len(samples)
    return {
        "kind": samples.kind,
        "model": chosen.model,
        "epochs": chosen.budget.epochs,
        "num_skipped": len(samples.skipped),
        "seconds": round(seconds, 1),
        "samples_per_second": round(observed / seconds),
    }
