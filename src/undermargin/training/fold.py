"""One fold's training from beginning to end: watched, stopped when it is enough, resumed after a kill."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from undermargin.procedure import Fold
from undermargin.storage.files import append_line
from undermargin.tracking import ranks
from undermargin.tracking.run import Run
from undermargin.tracking.tracker import Tracker
from undermargin.tracking.trajectories import Trajectories
from undermargin.training.checkpoint import load_checkpoint, save_checkpoint
from undermargin.training.engine import Engine, Plan, Rows
from undermargin.training.network import NetworkPlan
from undermargin.training.stop import Stop

CHECKPOINT_SECONDS = 1.0  # at least this long between two checkpoints
TIMED_BATCHES = 4


@dataclass(frozen=True)
class Progress:
    """Where a scan is: after how many epochs of how many at most, of which fold, how fast, and its cutoff so far."""

    fold: int
    epoch: int  # ended so far, in this fold
    epochs: int  # at most, in each fold
    samples_per_second: float
    cutoff: float  # the percentile of the threshold samples' scores so far
    is_last: bool  # of this fold: because it is enough, or because all epochs were run


OnEpoch = Callable[[Progress], None]


@dataclass(frozen=True)
class Task:
    """What is asked of one fold's training, and where it leaves its files."""

    fold: Fold
    seed: int
    path: Path
    stops: bool  # when the ranking has settled; else all epochs are run
    skip_epochs: int = 0
    percentile: float = 99.0
    records: bool = False  # every sample's margin at every epoch, in files beside the scores
    rows: Rows | None = None  # who is trained on; None: everybody
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None

    def tracker(self) -> Tracker:
        """The one that watches this training."""
        trajectories = Trajectories(self.path / "trajectories") if self.records else None
        return Tracker(
            len(self.fold.labels),
            skip_epochs=self.skip_epochs,
            suggest=self.fold.num_classes,
            trajectories=trajectories,
        )

    def run(self) -> Run:
        """What the training left."""
        return Run.load(self.path / "scores.parquet")

    def finished(self) -> Run | None:
        """What an earlier training left, if it came to its end."""
        return self.run() if (self.path / "scores.parquet").is_file() else None

    def leave(self, tracker: Tracker) -> None:
        """Write what the training found; this file says that the fold is done."""
        run = tracker.run(self.fold, ids=self.ids, class_names=self.class_names)
        if ranks.rank() == 0:
            run.save(self.path / "scores.parquet")


def train_fold(plan: Plan, task: Task, on_epoch: OnEpoch) -> None:
    """Train, or go on with it, until its end, and leave the run."""
    engine = plan.start(task.fold.labels, task.fold.num_outputs, seed=task.seed, budget=plan.budget, rows=task.rows)
    tracker, stop = task.tracker(), Stop()
    checkpoint = task.path / "checkpoint.safetensors"
    if checkpoint.is_file():
        load_checkpoint(checkpoint, engine, tracker, stop)
    saved, is_last = time.monotonic(), stop.was_settled or tracker.epoch >= plan.budget.epochs
    while not is_last:
        seconds = _run_epoch(engine, tracker)
        scores = tracker.scores("aum") if tracker.epoch > task.skip_epochs else None
        is_settled = scores is not None and task.stops and stop.is_settled(tracker.epoch, scores)
        is_last = is_settled or tracker.epoch >= plan.budget.epochs
        if ranks.rank() == 0:
            line = {"epoch": tracker.epoch - 1, "seconds": round(seconds, 3), "is_last": is_last}
            append_line(task.path / "log.jsonl", line)
            if is_last or time.monotonic() - saved >= CHECKPOINT_SECONDS:
                save_checkpoint(checkpoint, engine, tracker, stop)
                saved = time.monotonic()
            cutoff = np.nan if scores is None else _cutoff(scores, task)
            speed = len(task.fold.labels) / seconds
            on_epoch(Progress(task.fold.number, tracker.epoch, plan.budget.epochs, speed, cutoff, is_last))
    task.leave(tracker)


def _run_epoch(engine: Engine, tracker: Tracker) -> float:
    """One epoch, and how many seconds it took."""
    started = time.perf_counter()
    engine.run_epoch(tracker.epoch, tracker.update)
    tracker.end_epoch()
    return time.perf_counter() - started


def _cutoff(scores: np.ndarray, task: Task) -> float:
    of_threshold = scores[task.fold.is_threshold]
    of_threshold = of_threshold[~np.isnan(of_threshold)]
    if not len(of_threshold):
        return np.nan
    return float(np.percentile(of_threshold, task.percentile, method="inverted_cdf"))  # as the cutoff has it


def seconds_per_epoch(plan: NetworkPlan, task: Task) -> float:
    """What an epoch will take, from a few steps on a training that is thrown away."""
    rows = np.arange(len(task.fold.labels)) if task.rows is None else task.rows
    few = rows[:: max(1, len(rows) // (TIMED_BATCHES * plan.budget.batch_size))]
    engine = plan.start(task.fold.labels, task.fold.num_outputs, seed=task.seed, budget=plan.budget, rows=few)
    engine.run_epoch(0)  # the first time is slow
    started = time.perf_counter()
    engine.run_epoch(1)
    return (time.perf_counter() - started) / len(few) * len(rows)
