"""The training loop of scans and recipes: watched by a tracker, resumed after a kill, stopped when it is enough."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from undermargin.errors import DivergedError
from undermargin.storage.files import append_line
from undermargin.tracking import ranks
from undermargin.tracking.tracker import Tracker
from undermargin.training.checkpoint import load_checkpoint, save_checkpoint
from undermargin.training.engine import Engine
from undermargin.training.network import Training
from undermargin.training.stop import Stop


@dataclass(frozen=True)
class Ended:
    """An epoch that has ended."""

    epoch: int  # epochs ended so far
    seconds: float
    is_last: bool


@dataclass(frozen=True)
class Loop:
    """How long a training is, where it is kept, and who hears of it."""

    epochs: int
    name: str  # in messages
    checkpoint: Path | None = None  # None: a killed training starts again
    checkpoint_seconds: float = 0.0  # at least this long between two checkpoints
    log: Path | None = None  # a JSON line per epoch; one that is run again after a kill has two
    stop: Stop | None = None  # ends the training when its ranking has settled
    on_epoch: Callable[[Ended], None] = lambda ended: None  # noqa: ARG005

    def run(self, engine: Engine, tracker: Tracker) -> None:
        """Train to the end, from the checkpoint if there is one."""
        if self.checkpoint is not None and self.checkpoint.is_file():
            load_checkpoint(self.checkpoint, engine, tracker, self.stop)
        saved = time.monotonic()
        is_last = tracker.epoch >= self.epochs or (self.stop is not None and self.stop.was_settled)
        while not is_last:
            started = time.perf_counter()
            engine.run_epoch(tracker.epoch, tracker.update)
            self._check(engine, tracker.epoch)
            tracker.end_epoch()
            seconds = time.perf_counter() - started
            is_last = self._is_settled(tracker) or tracker.epoch >= self.epochs
            if ranks.rank() == 0:
                if self.log is not None:  # before the checkpoint: an epoch that is kept has its line
                    line = {"epoch": tracker.epoch - 1, "seconds": round(seconds, 3), "is_last": is_last}
                    append_line(self.log, line)
                is_due = is_last or time.monotonic() - saved >= self.checkpoint_seconds
                if self.checkpoint is not None and is_due:
                    save_checkpoint(self.checkpoint, engine, tracker, self.stop)
                    saved = time.monotonic()
            self.on_epoch(Ended(tracker.epoch, seconds, is_last))

    def _is_settled(self, tracker: Tracker) -> bool:
        if self.stop is None or tracker.epoch <= tracker.skip_epochs:
            return False
        return self.stop.is_settled(tracker.epoch, tracker.scores("aum"))

    def _check(self, engine: Engine, epoch: int) -> None:
        """Raise for weights that are no longer finite, before the tracker has to judge what comes out of them."""
        if not isinstance(engine, Training):
            return
        weights = [weight for weight in engine.network.parameters() if weight.requires_grad]
        if weights and not torch.stack([weight.isfinite().all() for weight in weights]).all():
            raise DivergedError(
                f"{self.name} diverged in epoch {epoch + 1} of {self.epochs}: weights became NaN or infinite. "
                f"A learning rate below {engine.budget.rate(epoch):g} may help"
            )
