"""The training of one fold: what is asked of it, its progress, and the run it leaves."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from undermargin.cutoffs.percentile import percentile
from undermargin.errors import IdentifyError
from undermargin.procedure import Fold
from undermargin.tracking import ranks
from undermargin.tracking.run import Run
from undermargin.tracking.tracker import Tracker
from undermargin.tracking.trajectories import Trajectories
from undermargin.training.engine import Plan, Rows
from undermargin.training.loop import Ended, Loop
from undermargin.training.network import NetworkPlan
from undermargin.training.stop import Stop

CHECKPOINT_SECONDS = 1.0  # at least this long between two checkpoints
TIMED_BATCHES = 4
MOST_PROBABILITIES = 1 << 27  # samples x classes whose mean probabilities are kept: 512 MB


@dataclass(frozen=True)
class Progress:
    """How far a fold's training has come."""

    fold: int
    epoch: int  # epochs ended so far in this fold
    epochs: int  # at most, per fold
    samples_per_second: float
    cutoff: float  # the percentile of the threshold samples' scores so far
    is_last: bool  # the fold has ended: its ranking has settled, or all epochs were run


OnEpoch = Callable[[Progress], None]


@dataclass(frozen=True)
class Task:
    """One fold to train, and where its files go."""

    fold: Fold
    seed: int
    path: Path
    stops: bool  # when the ranking has settled; otherwise all epochs are run
    skip_epochs: int = 0
    percentile: float = 99.0
    records: bool = False  # every sample's margin at every epoch, in files beside the scores
    rows: Rows | None = None  # samples to train on; None: all
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None

    def tracker(self) -> Tracker:
        """A new tracker for this training."""
        trajectories = Trajectories(self.path / "trajectories") if self.records else None
        size, num_classes = len(self.fold.labels), self.fold.num_classes
        return Tracker(
            size,
            skip_epochs=self.skip_epochs,
            suggest=num_classes,
            probabilities=num_classes if size * num_classes <= MOST_PROBABILITIES else None,
            trajectories=trajectories,
        )

    def run(self) -> Run:
        """The run that the training left."""
        return Run.load(self.path / "scores.parquet")

    @property
    def is_finished(self) -> bool:
        """Whether the training has come to its end."""
        return (self.path / "scores.parquet").is_file()

    def leave(self, tracker: Tracker) -> None:
        """Write the run; its file marks the fold as finished."""
        run = tracker.run(self.fold, ids=self.ids, class_names=self.class_names)
        if ranks.rank() == 0:
            run.save(self.path / "scores.parquet")


def train_fold(plan: Plan, task: Task, on_epoch: OnEpoch) -> None:
    """Train a fold to its end, from its checkpoint if there is one, and write the run."""
    engine = plan.start(task.fold.labels, task.fold.num_outputs, seed=task.seed, budget=plan.budget, rows=task.rows)
    tracker = task.tracker()

    def tell(ended: Ended) -> None:
        if ranks.rank() == 0:
            speed = len(task.fold.labels) / ended.seconds
            cutoff = _cutoff_so_far(tracker, task)
            on_epoch(Progress(task.fold.number, ended.epoch, plan.budget.epochs, speed, cutoff, ended.is_last))

    Loop(
        plan.budget.epochs,
        f"fold {task.fold.number}",
        checkpoint=task.path / "checkpoint.safetensors",
        checkpoint_seconds=CHECKPOINT_SECONDS,
        log=task.path / "log.jsonl",
        stop=Stop() if task.stops else None,
        on_epoch=tell,
    ).run(engine, tracker)
    task.leave(tracker)


def _cutoff_so_far(tracker: Tracker, task: Task) -> float:
    """The percentile of the threshold samples' scores; nan before any of them counts."""
    if tracker.epoch <= task.skip_epochs:
        return np.nan
    try:
        return percentile(Run(tracker.scores("aum"), task.fold.is_threshold), task.percentile)
    except IdentifyError:  # none of them was observed
        return np.nan


def seconds_per_epoch(plan: NetworkPlan, task: Task) -> float:
    """Estimated seconds per epoch, from a few steps of a training that is thrown away."""
    rows = np.arange(len(task.fold.labels)) if task.rows is None else task.rows
    few = rows[:: max(1, len(rows) // (TIMED_BATCHES * plan.budget.batch_size))]
    engine = plan.start(task.fold.labels, task.fold.num_outputs, seed=task.seed, budget=plan.budget, rows=few)
    engine.run_epoch(0)  # the first time is slow
    started = time.perf_counter()
    engine.run_epoch(1)
    return (time.perf_counter() - started) / len(few) * len(rows)
