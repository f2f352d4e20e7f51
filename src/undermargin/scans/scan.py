"""The procedure on a data set: load, train both folds while a tracker watches, judge, leave a folder.

Killed at any moment and started again with the same words, it goes on where it stopped and ends with the same
verdicts: every epoch depends on the seed and its number alone, and finished folds are not trained again.
"""

import csv
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from undermargin.cutoffs import choose
from undermargin.errors import InputError
from undermargin.procedure import Fold, Procedure, folds, seeds
from undermargin.scans.clock import Clock
from undermargin.scans.effects import Decided, effects
from undermargin.scans.folder import Folder
from undermargin.scans.judge import judge, percentile_for
from undermargin.scans.record import Scan
from undermargin.scans.settings import OWN_TRAINING, Settings, claim, environment
from undermargin.sources.samples import OnRead, Reading, Samples
from undermargin.sources.source import load
from undermargin.sources.views import IndexedDataset, RelabeledDataset
from undermargin.storage import consent as roots
from undermargin.storage.csv import neutralise
from undermargin.storage.files import replacing
from undermargin.tracking import ranks
from undermargin.tracking.run import Run
from undermargin.tracking.tracker import Tracker
from undermargin.training.engine import Plan, Rows
from undermargin.training.fold import OnEpoch, Progress, Task, seconds_per_epoch, train_fold
from undermargin.training.network import NetworkPlan, accelerator
from undermargin.training.plan import MakeModel, check_model, plan
from undermargin.training.side_by_side import train_side_by_side
from undermargin.verdicts.record import Verdicts

__all__ = ["Job", "Outlook", "Progress", "scan"]

SIDE_BY_SIDE = 2000  # images; fewer are done before a second process has started
PIXELS = "pixels.bin"  # where images go that do not fit into memory, while the scan lasts


@dataclass(frozen=True)
class Outlook:
    """What was found, and what will be done about it."""

    samples: Samples
    plan: Plan
    jobs: int
    seconds: float | None  # an estimate of all that is left to train, from a few timed steps; None: a user's training


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
    label: str | None = Reading.label,
    text: str | None = Reading.text,
    image: str | None = Reading.image,
    where: str | None = Reading.where,
    image_size: int | None = Reading.image_size,
    memory: int | None = Reading.memory,
    procedure: Procedure = Settings.procedure,
    cutoff: str | float | None = Settings.cutoff,
    model: str | MakeModel | None = Settings.model,
    epochs: int | None = Settings.epochs,
    seed: int = Settings.seed,
    jobs: int = Settings.jobs,
    precision: str = Settings.precision,
    decisions: str | Path | None = Settings.decisions,
    records: bool = Settings.records,
    train: Callable[[Job], None] | None = None,
    on_read: OnRead = lambda done, total: None,  # noqa: ARG005
    on_start: Callable[[Outlook], None] = lambda outlook: None,  # noqa: ARG005
    on_epoch: OnEpoch = lambda progress: None,  # noqa: ARG005
) -> Scan:
    """Which labels of a data set look wrong. Leaves a scan folder in `out`.

    `source` is a path (class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy, a Hugging Face folder) or data in
    memory: (inputs, labels), a frame, a table, a data set. `cutoff` is a row of the table of cutoffs, or a number;
    without it the procedure's own, which is `auto` for the default one. `model` is a name, or makes a network from a
    number of outputs. `train` is a training of your own, called with a `Job` for each fold. `decisions` is an earlier
    scan of the same data: what people decided there is trusted, relabels are applied, dropped samples are left out of
    the training. `records` keeps every sample's margin at every epoch, four bytes each, for the report.
    """
    cutoff = procedure.cutoff if cutoff is None else cutoff
    choose(cutoff)  # one that does not exist is refused now, not after the training
    accelerator(precision)  # from here on, processes that torchrun started know of each other
    folder, is_main = Folder(out), ranks.rank() == 0
    if not is_main:  # only one of several processes speaks
        on_read, on_start = _nothing, _nothing
    with folder.locked() if is_main else nullcontext():
        clock = Clock(folder / "clock.json")
        spill = folder / (PIXELS if ranks.num_ranks() == 1 else f"{ranks.rank()}.{PIXELS}")
        reading = Reading(label, text, image, where, image_size or check_model(model), memory, spill, on_read)
        settings = Settings(procedure, cutoff, model, epochs, seed, jobs, precision, decisions, records)
        try:
            samples = load(source, reading)
            verdicts, about = _judge(folder, samples, settings, train, on_start, clock.ticking(on_epoch))
        finally:
            spill.unlink(missing_ok=True)
        if is_main:
            clock.save()
            folder.save_verdicts(verdicts, **about, seconds=round(clock.seconds, 1))
            folder.write_manifest()
    ranks.wait()  # the other processes find the files, too
    return Scan(folder)


def _nothing(*_: Any) -> None:
    """Say nothing."""


def _judge(
    folder: Folder,
    samples: Samples,
    settings: Settings,
    train: Callable[[Job], None] | None,
    on_start: Callable[[Outlook], None],
    on_epoch: OnEpoch,
) -> tuple[Verdicts, dict[str, Any]]:
    """Verdicts, and what the summary says about how they came about."""
    fingerprint, given = samples.fingerprint(), samples.labels
    decided = Folder.open(settings.decisions).decided_about(fingerprint) if settings.decisions else {}
    changed = effects(decided, given, samples.class_names)
    samples = replace(samples, labels=changed.labels)
    chosen = _with_epochs(plan(samples, model=settings.model, precision=settings.precision), settings)
    jobs = _jobs(settings, samples)
    if ranks.rank() == 0:
        name = OWN_TRAINING if train else chosen.model
        is_own = {"is_own_model": train is not None or callable(settings.model), "jobs": jobs}
        data: dict[str, Any] = {"source": samples.found, "kind": samples.kind, "num_samples": len(samples)}
        data |= {"class_names": samples.class_names}
        derived = {"model": name, "budget": asdict(chosen.budget), "stops": settings.stops, **environment()}
        claim(folder, data | settings.config() | derived | _trust(fingerprint, decided) | is_own)
        _write_skipped(folder, samples)
        if "path" in samples.found:
            roots.confirm(folder.path, samples.found["path"])
    tasks = _tasks(folder, samples, settings, changed.rows)
    done = [task.finished() for task in tasks]
    left = [task for task, run in zip(tasks, done, strict=True) if run is None]
    on_start(Outlook(samples, chosen, jobs, None if train else _seconds(chosen, left, jobs)))
    if train is not None:
        for task in left:
            tracker = task.tracker()
            train(_job(samples, task, tracker))
            task.leave(tracker)
    elif jobs > 1:  # also when one fold is left: it had its share of the threads before, and must end the same
        train_side_by_side(chosen, left, jobs, on_epoch)
    else:
        for task in left:
            train_fold(chosen, task, on_epoch)
    ranks.wait()
    runs = [run or task.run() for run, task in zip(done, tasks, strict=True)]
    assert settings.cutoff is not None  # noqa: S101 - for the type checker
    share = percentile_for(settings.cutoff, settings.procedure.percentile)
    verdicts = judge(runs, settings.cutoff, percentile=share, trusted=decided, labels=given)
    return verdicts, _about(folder, samples, chosen, runs, is_own=train is not None)


def _trust(fingerprint: str, decided: Decided) -> dict[str, Any]:
    """What the config says about trusted decisions; the fingerprint is that of the data as they are."""
    named = {str(index): [one.action, one.label] for index, one in sorted(decided.items())}
    return {"fingerprint": fingerprint, "trusted": named}


def _with_epochs(chosen: Plan, settings: Settings) -> Plan:
    epochs = settings.epochs or settings.procedure.epochs
    return replace(chosen, budget=replace(chosen.budget, epochs=epochs)) if epochs else chosen  # type: ignore[type-var]


def _jobs(settings: Settings, samples: Samples) -> int:
    """How many folds side by side: both, where one alone would leave cores idle and lasts long enough to care."""
    if ranks.num_ranks() > 1 or callable(settings.model):  # what a user's function makes may not go to other processes
        return 1
    if settings.jobs:
        if settings.jobs not in (1, 2):
            raise InputError(f"jobs is {settings.jobs}, expected 1 or 2, or 0 to have it chosen: there are two folds")
        return settings.jobs
    import torch

    is_on_cpu = accelerator(settings.precision).device.type == "cpu"
    is_worth_it = samples.kind == "images" and len(samples) >= SIDE_BY_SIDE
    return 2 if is_worth_it and is_on_cpu and torch.get_num_threads() >= 2 else 1


def _tasks(folder: Folder, samples: Samples, settings: Settings, rows: Rows | None) -> list[Task]:
    procedure = settings.procedure
    both = folds(samples.labels, samples.num_classes, seed=settings.seed, procedure=procedure)
    return [
        Task(
            fold,
            fold_seed,
            folder.fold(fold.number),
            stops=settings.stops,
            skip_epochs=procedure.skip_epochs,
            percentile=procedure.percentile,
            records=settings.records,
            rows=rows,
            ids=samples.ids,
            class_names=samples.class_names,
        )
        for fold, fold_seed in zip(both, seeds(procedure, settings.seed), strict=True)
    ]


def _seconds(chosen: Plan, left: list[Task], jobs: int) -> float | None:
    """How long the epochs will take if all are run; trees are grown in one go, so nobody knows before."""
    if not left:
        return 0.0
    if not isinstance(chosen, NetworkPlan):
        return None
    return seconds_per_epoch(chosen, left[0]) * chosen.budget.epochs * len(left) / min(jobs, len(left))


def _job(samples: Samples, task: Task, tracker: Tracker) -> Job:
    dataset: Any = IndexedDataset(RelabeledDataset(samples, task.fold.labels.tolist()))
    if task.rows is not None:
        from torch.utils.data import Subset

        dataset = Subset(dataset, task.rows.tolist())  # indices stay those of the whole data set
    return Job(dataset, task.fold.num_outputs, task.fold, task.seed, task.path, tracker)


def _write_skipped(folder: Folder, samples: Samples) -> None:
    if samples.skipped:
        ids, reasons = zip(*samples.skipped, strict=True)
        columns = neutralise(pa.table({"id": ids, "reason": reasons})).to_pydict()
        with replacing(folder / "skipped.csv") as path, path.open("w", newline="") as file:
            csv.writer(file).writerows([tuple(columns), *zip(*columns.values(), strict=True)])


def _about(folder: Folder, samples: Samples, chosen: Plan, runs: list[Run], *, is_own: bool) -> dict[str, Any]:
    about: dict[str, Any] = {
        "kind": samples.kind,
        "model": OWN_TRAINING if is_own else chosen.model,
        "num_skipped": len(samples.skipped),
    }
    if is_own:
        return about
    seconds = [folder.epoch_seconds(run.fold) for run in runs]
    epochs = [len(one) for one in seconds]
    trained = sum(map(sum, seconds))  # also what was trained before a kill
    return about | {
        "epochs": epochs,
        "saved_epochs": len(runs) * chosen.budget.epochs - sum(epochs),
        "training_seconds": round(trained, 1),
        "samples_per_second": round(sum(epochs) * len(samples) / max(trained, 1e-3)),
    }
