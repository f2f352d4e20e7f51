"""The procedure on a data set: load, train both folds while a tracker watches, judge, leave a folder.

Killed at any moment and run again with the same settings, it resumes and ends with the same verdicts: an epoch
depends on the seed and its number only, and finished folds are not trained again.
"""

import secrets
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from undermargin.cutoffs import choose
from undermargin.errors import InputError
from undermargin.procedure import Fold, Procedure, trainings
from undermargin.scans.clock import Clock
from undermargin.scans.effects import Decided, effects
from undermargin.scans.folder import Folder
from undermargin.scans.judge import check_limits, judge, percentile_for
from undermargin.scans.settings import OWN_TRAINING, Settings, claim, environment
from undermargin.scans.skipped import write_skipped
from undermargin.sources.samples import Reading, Samples
from undermargin.sources.source import load
from undermargin.sources.views import IndexedDataset, RelabeledDataset
from undermargin.storage import consent
from undermargin.tracking import ranks
from undermargin.tracking.run import Run
from undermargin.tracking.tracker import Tracker
from undermargin.training.engine import Plan, Rows
from undermargin.training.fold import OnEpoch, Task, seconds_per_epoch, train_fold
from undermargin.training.network import NetworkPlan, accelerator
from undermargin.training.plan import check_model, is_small, num_folds, plan
from undermargin.training.side_by_side import train_side_by_side
from undermargin.verdicts.record import Verdicts

SIDE_BY_SIDE = 2000  # images; fewer are done before a second process has started


@dataclass(frozen=True)
class Outlook:
    """What was found in the data, and what will be trained."""

    samples: Samples
    plan: Plan
    num_folds: int
    jobs: int
    seconds: float | None  # estimate for all that is left to train, from a few timed steps; None: not known


@dataclass(frozen=True)
class Job:
    """What a user's own training function gets: train on `dataset`, pass every step to `tracker`."""

    dataset: Any  # (x, label, index): the fold's labels, threshold samples included
    num_outputs: int
    fold: Fold
    seed: int
    folder: Path
    tracker: Tracker


@dataclass(frozen=True)
class Hooks:
    """Functions that are called while a scan runs; in a job of several processes, by the first of them."""

    train: Callable[[Job], None] | None = None  # instead of our own training
    on_start: Callable[[Outlook], None] = lambda outlook: None  # noqa: ARG005
    on_epoch: OnEpoch = lambda progress: None  # noqa: ARG005


def run(source: Any, folder: Folder, reading: Reading, settings: Settings, hooks: Hooks) -> Verdicts:
    """Scan a source into a folder and return the verdicts."""
    cutoff = settings.procedure.cutoff if settings.cutoff is None else settings.cutoff
    choose(cutoff)  # an unknown cutoff is refused now, not after the training
    check_limits(cutoff, settings.precision, settings.budget)
    size = reading.image_size or check_model(settings.model)
    is_main = ranks.rank() == 0
    with folder.locked() if is_main else nullcontext():
        clock = Clock(folder / "clock.json")
        spill = folder / f".pixels.{secrets.token_hex(8)}"  # a name that only this process knows
        try:
            samples = load(source, replace(reading, image_size=size, spill=spill))
            hooks = replace(hooks, on_epoch=clock.ticking(hooks.on_epoch))
            verdicts, about = _judged(folder, samples, replace(settings, cutoff=cutoff), hooks)
        finally:
            spill.unlink(missing_ok=True)
        if is_main:
            clock.save()
            folder.save_verdicts(verdicts, **about, seconds=round(clock.seconds, 1))
            folder.write_manifest()
    ranks.wait()  # the other processes find the files, too
    return verdicts


def _judged(folder: Folder, samples: Samples, settings: Settings, hooks: Hooks) -> tuple[Verdicts, dict[str, Any]]:
    """Verdicts, and what the summary says about the training."""
    fingerprint, given = samples.fingerprint(), samples.labels
    decided = Folder.open(settings.decisions).decided_about(fingerprint) if settings.decisions else {}
    changed = effects(decided, given, samples.class_names)
    samples = replace(samples, labels=changed.labels)
    settings = replace(settings, procedure=_with_folds(settings, samples))
    chosen = _with_epochs(plan(samples, model=settings.model, precision=settings.mixed_precision), settings)
    trained = _Trained(folder, samples, settings, hooks, chosen, _jobs(settings, samples), changed.rows)
    if ranks.rank() == 0:
        claim(folder, trained.config() | {"fingerprint": fingerprint, "trusted": _named(decided)})
        write_skipped(folder, samples.skipped)
        if "path" in samples.found:
            consent.confirm(folder.path, samples.found["path"])
    runs = trained.runs()
    assert settings.cutoff is not None  # noqa: S101 - filled in by `run`
    share = percentile_for(settings.cutoff, settings.procedure.percentile)
    verdicts = judge(
        runs,
        settings.cutoff,
        percentile=share,
        precision=settings.precision,
        budget=settings.budget,
        trusted=decided,
        labels=given,
    )
    return verdicts, trained.about(runs)


def _named(decided: Decided) -> dict[str, Any]:
    """Trusted decisions as the configuration has them."""
    return {str(index): [one.action, one.label] for index, one in sorted(decided.items())}


def _with_epochs(chosen: Plan, settings: Settings) -> Plan:
    epochs = settings.epochs or settings.procedure.epochs
    return replace(chosen, budget=replace(chosen.budget, epochs=epochs)) if epochs else chosen  # type: ignore[type-var]


def _with_folds(settings: Settings, samples: Samples) -> Procedure:
    """The procedure with the number of folds that was asked for, or that fits the data."""
    procedure = settings.procedure
    if settings.folds is not None:
        return procedure.with_folds(settings.folds)
    return procedure.with_folds(num_folds(samples)) if procedure.chosen_cutoff == "probability" else procedure


def _jobs(settings: Settings, samples: Samples) -> int:
    """How many folds to train side by side: both, where one alone would leave cores idle and takes long enough."""
    if ranks.num_ranks() > 1 or callable(settings.model):  # a user's function may not be sent to other processes
        return 1
    if settings.jobs:
        if settings.jobs not in (1, 2):
            raise InputError(f"jobs is {settings.jobs}, expected 1 or 2, or 0 to choose: there are two folds")
        return settings.jobs
    import torch

    is_on_cpu = accelerator(settings.mixed_precision).device.type == "cpu"
    is_worth_it = samples.kind == "images" and len(samples) >= SIDE_BY_SIDE
    return 2 if is_worth_it and is_on_cpu and torch.get_num_threads() >= 2 else 1


@dataclass(frozen=True)
class _Trained:
    """The training part of a scan: both folds, with our training or the user's."""

    folder: Folder
    samples: Samples
    settings: Settings
    hooks: Hooks
    plan: Plan
    jobs: int
    rows: Rows | None  # samples to train on; None: all

    @property
    def model(self) -> str:
        return self.plan.model if self.hooks.train is None else OWN_TRAINING

    @property
    def stops(self) -> bool:
        """Whether a fold ends when its ranking has settled."""
        return self.settings.stops and not is_small(self.samples)

    def config(self) -> dict[str, Any]:
        """What the configuration says about data, settings and training."""
        samples, settings = self.samples, self.settings
        return {
            "source": samples.found,
            "kind": samples.kind,
            "num_samples": len(samples),
            "class_names": samples.class_names,
            **settings.config(),
            "model": self.model,
            "is_own_model": self.hooks.train is not None or callable(settings.model),
            "budget": asdict(self.plan.budget),
            "stops": self.stops,
            "num_folds": settings.procedure.num_folds,
            "jobs": self.jobs,
            **environment(),
        }

    def runs(self) -> list[Run]:
        """Train what has not been trained yet, and return the runs of all folds."""
        tasks = self._tasks()
        done = [self.folder.run(task.fold.number) if task.is_finished else None for task in tasks]
        left = [task for task in tasks if not task.is_finished]
        self.hooks.on_start(Outlook(self.samples, self.plan, len(tasks), self.jobs, self._seconds(left)))
        if self.hooks.train is not None:
            for task in left:
                tracker = task.tracker()
                self.hooks.train(self._job(task, tracker))
                task.leave(tracker)
        elif self.jobs > 1:  # also for one fold that is left: it had its share of the threads before
            train_side_by_side(self.plan, left, self.jobs, self.hooks.on_epoch)
        else:
            for task in left:
                train_fold(self.plan, task, self.hooks.on_epoch)
        ranks.wait()
        return [run or task.run() for run, task in zip(done, tasks, strict=True)]

    def _tasks(self) -> list[Task]:
        samples, settings, procedure = self.samples, self.settings, self.settings.procedure
        pairs = trainings(samples.labels, samples.num_classes, seed=settings.seed, procedure=procedure)
        return [
            Task(
                fold,
                seed,
                self.folder.fold(fold.number),
                stops=self.stops,
                skip_epochs=procedure.skip_epochs,
                percentile=procedure.percentile,
                records=settings.records,
                rows=self.rows,
                ids=samples.ids,
                class_names=samples.class_names,
            )
            for fold, seed in pairs
        ]

    def _seconds(self, left: list[Task]) -> float | None:
        """Estimated time of all epochs; None for trees, which are grown in one go, and for a user's training."""
        if not left:
            return 0.0
        if not isinstance(self.plan, NetworkPlan) or self.hooks.train is not None:
            return None
        seconds = seconds_per_epoch(self.plan, left[0]) * self.plan.budget.epochs
        return seconds * len(left) / min(self.jobs, len(left))

    def _job(self, task: Task, tracker: Tracker) -> Job:
        dataset: Any = IndexedDataset(RelabeledDataset(self.samples, task.fold.labels.tolist()))
        if task.rows is not None:
            from torch.utils.data import Subset

            dataset = Subset(dataset, task.rows.tolist())  # indices stay those of the whole data set
        return Job(dataset, task.fold.num_outputs, task.fold, task.seed, task.path, tracker)

    def about(self, runs: list[Run]) -> dict[str, Any]:
        """What the summary says about the training."""
        samples = self.samples
        about = {"kind": samples.kind, "model": self.model, "num_skipped": len(samples.skipped)}
        if self.hooks.train is not None:
            return about
        seconds = [self.folder.epoch_seconds(run.fold) for run in runs]
        epochs = [len(one) for one in seconds]
        total = sum(map(sum, seconds))  # also what was trained before a kill
        return about | {
            "epochs": epochs,
            "saved_epochs": len(runs) * self.plan.budget.epochs - sum(epochs),
            "training_seconds": round(total, 1),
            "samples_per_second": round(sum(epochs) * len(samples) / max(total, 1e-3)),
        }
