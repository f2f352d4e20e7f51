"""The tracker: observes a training and gives every sample a score, without changing the training."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.errors import InputError, ObservationError
from undermargin.procedure import Fold
from undermargin.storage.tensors import load_tensors, save_tensors
from undermargin.tracking.locks import Lockable, locked
from undermargin.tracking.memory import Memory
from undermargin.tracking.notices import Notices
from undermargin.tracking.observations import Ids, as_indices, as_labels, as_logits
from undermargin.tracking.ranks import rank
from undermargin.tracking.run import Run
from undermargin.tracking.scores import SCORES
from undermargin.tracking.settings import Settings
from undermargin.tracking.state import State
from undermargin.tracking.trajectories import Trajectories

Array = npt.NDArray[np.float32]


class Tracker(Lockable):
    """Observes one training of `num_samples` samples and computes `scores`, names in the table of scores.

    `ids` are names to use in `update` instead of positions. The first `skip_epochs` epochs and those from
    `until_epoch` on are not averaged (the paper stops before the first learning-rate drop).
    `suggest` is the number of classes (without the extra one) among which a label is suggested for each sample.
    `probabilities` is the same number, and keeps the mean probability of each class for each sample.
    `trajectories` records every epoch on disk, also those that are not averaged.

    Call `end_epoch()` after every epoch: signals are averaged within an epoch, then over epochs. If `end_epoch()` is
    never called, every observation counts once. After the first call, an epoch that has not ended does not count.

    Methods may be called from several threads.

    >>> tracker = Tracker(3)
    >>> tracker.update([[2.0, 1.0], [0.0, 3.0]], labels=[0, 0], indices=[0, 2])
    >>> tracker.scores("aum")
    array([ 1., nan, -3.], dtype=float32)
    """

    def __init__(
        self,
        num_samples: int,
        scores: Sequence[str] = ("aum",),
        *,
        ids: Sequence[Any] | None = None,
        skip_epochs: int = 0,
        until_epoch: int | None = None,
        suggest: int | None = None,
        probabilities: int | None = None,
        trajectories: Trajectories | None = None,
    ) -> None:
        super().__init__()
        settings = Settings(num_samples, scores, skip_epochs, until_epoch, suggest, probabilities)
        if trajectories is not None:
            trajectories.check(settings.num_samples)
        self.settings, self.trajectories = settings, trajectories
        self.num_samples, self.score_names = settings.num_samples, settings.scores
        self.skip_epochs, self.until_epoch = settings.skip_epochs, settings.until_epoch
        self.suggest, self.num_probabilities = settings.suggest, settings.probabilities
        self._memory = Memory(settings, None if ids is None else Ids(ids, settings.num_samples), trajectories)
        self._notices = Notices()

    @property
    def epoch(self) -> int:
        """Number of ended epochs."""
        return self._memory.epoch

    def update(self, logits: Any, labels: Any, indices: Any) -> None:
        """Observe a batch: logits (batch, classes), labels (batch,), indices (batch,) or ids.

        Accepts tensors on any device, arrays and lists, and never waits for the device.
        """
        if torch.compiler.is_compiling():  # the training step is compiled, the tracker is not
            torch.compiler.disable(self._observe)(logits, labels, indices)  # type: ignore[no-untyped-call]
        else:
            self._observe(logits, labels, indices)

    def _observe(self, logits: Any, labels: Any, indices: Any) -> None:
        memory = self._memory
        if memory.missing_ids is not None:
            raise InputError("the samples of this state have ids; pass them again, as in Tracker.load(path, ids=names)")
        if not torch.is_grad_enabled() and not getattr(logits, "requires_grad", False):
            self._notices.no_gradients()
        logits = as_logits(logits)
        labels = as_labels(labels, logits)
        indices = (as_indices if memory.ids is None else memory.ids.indices)(indices, logits)
        if len(logits):
            with self._lock:
                if memory.is_open or self.trajectories is not None:
                    memory.state_for(logits).update(logits, labels, indices)

    @locked
    def end_epoch(self) -> None:
        """End the epoch: its mean counts once for every sample observed in it. Merges the ranks (a collective)."""
        memory = self._memory
        memory.reduce()
        if memory.state is not None:
            if self.trajectories is not None and rank() == 0:
                memory.state.open.record(self.trajectories, memory.epoch)
            if memory.is_open:
                memory.state.end_epoch()
            else:
                memory.state.drop_epoch()
            self._report(memory.state)
        memory.epoch += 1

    @locked
    def reduce(self) -> None:
        """Merge the open epoch of all ranks, on all ranks (a collective). Does nothing in a job of one process."""
        self._memory.reduce()

    @locked
    def scores(self, name: str = "aum") -> Array:
        """One number per sample, low = suspicious, nan = never observed: (samples,). Never a collective."""
        memory = self._memory
        if name not in self.score_names:
            raise InputError(f"{name!r} was not tracked; request it with Tracker(n, scores=({name!r}, ...))")
        if self.settings.selects_epochs and not memory.epoch:
            raise ObservationError("skip_epochs and until_epoch need epochs: call end_epoch() after every epoch")
        if memory.state is None:
            return np.full(self.num_samples, np.nan, np.float32)
        if memory.epoch == 0 and SCORES[name].needs_epochs:
            raise ObservationError(f"{name} compares epochs: call end_epoch() after every epoch")
        memory.check_merged("scores")
        self._report(memory.state)
        if memory.epoch and memory.is_open and (num_open := memory.state.num_open()):
            self._notices.warn(
                f"{num_open} observations since the last end_epoch() do not count; is a call of end_epoch() missing?"
            )
        values, seen = memory.state.scores(name, has_epochs=memory.epoch > 0)
        return (SCORES[name].sign * values).where(seen, torch.nan).cpu().numpy()

    @property
    def lost(self) -> dict[str, int]:
        """Number of observations that did not count, by reason."""
        with self._lock:
            return {} if self._memory.state is None else self._memory.state.lost()

    @locked
    def suggestions(self) -> tuple[npt.NDArray[np.int64], Array]:
        """The class that most often beat the label (-1: none), and in what share of the epochs: (samples,) each."""
        if not self.suggest:
            raise InputError("suggestions were not tracked; request them with Tracker(n, suggest=num_classes)")
        state = self._ended("suggestions are counted over epochs")
        if state is None or state.suggestions is None:
            return np.full(self.num_samples, -1), np.full(self.num_samples, np.nan, np.float32)
        best, share = state.suggestions.best(state.epochs)
        return best.cpu().numpy().astype(np.int64), share.float().cpu().numpy()

    @locked
    def probabilities(self) -> Array:
        """Mean probability of each class over the epochs, without the extra output: (samples, classes).

        For threshold samples this is a held-out prediction: the network is never shown their real label.
        """
        if not self.num_probabilities:
            raise InputError("probabilities were not tracked; request them with Tracker(n, probabilities=num_classes)")
        state = self._ended("probabilities are means over epochs")
        if state is None or state.probabilities is None:
            return np.full((self.num_samples, self.num_probabilities), np.nan, np.float32)
        return (state.probabilities / state.epochs[:, None]).cpu().numpy()

    def _ended(self, reason: str) -> State | None:
        """The state, if there is one; an error with this reason if no epoch has ended."""
        if self.epoch == 0 and self._memory.state is not None:
            raise ObservationError(f"{reason}: call end_epoch() after every epoch")
        return self._memory.state

    @locked
    def run(
        self,
        fold: Fold | None = None,
        *,
        ids: Sequence[Any] | None = None,
        class_names: Sequence[str] | None = None,
        score: str = "aum",
    ) -> Run:
        """The result of this training, for `identify`."""
        if score in self.score_names and not SCORES[score].is_directed:
            raise InputError(f"{score} has no suspicious direction, so samples cannot be judged by it alone")
        if ids is None and self._memory.ids is not None:
            ids = list(self._memory.ids.positions)
        fields: dict[str, Any] = {"ids": ids, "class_names": class_names, "score": score}
        if fold is not None:
            fields |= {"is_threshold": fold.is_threshold, "labels": fold.assigned_labels, "fold": fold.number}
        if self.suggest:
            fields["suggested_labels"], fields["suggestion_confidence"] = self.suggestions()
        if self.num_probabilities:
            fields["probabilities"] = self.probabilities()
        return Run(scores=self.scores(score), **fields)

    def merge(self, later: "Tracker") -> None:
        """Append what another tracker observed: its ended epochs follow ours, the open epochs become one.

        Trackers that share the batches of one epoch must therefore be merged before `end_epoch()`.
        """
        first, second = sorted((self._lock, later._lock), key=id)  # in one order, so that two merges cannot deadlock
        with first, second:
            self._memory.merge(later._memory)

    @locked
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume from here, also in mid-epoch and with another number of ranks."""
        state = self._memory.as_dict()
        return {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}

    @locked
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a `state_dict` of a tracker with the same settings."""
        self._memory.load(state)

    @locked
    def save(self, path: str | Path) -> None:
        """Write the state as safetensors, atomically."""
        state = self._memory.as_dict()
        tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
        plain = {name: value for name, value in state.items() if name not in tensors}
        save_tensors(path, tensors, about=json.dumps(plain))

    @classmethod
    def load(cls, path: str | Path, **unsaved: Any) -> "Tracker":
        """Read what `save` wrote. `ids=` (needed to resume) and `trajectories=` are not saved and must be passed."""
        plain, tensors = load_tensors(path)
        if "settings" not in plain:
            raise InputError(f"{path} does not hold the state of a tracker")
        tracker = cls(**plain["settings"], **unsaved)
        tracker.load_state_dict(plain | tensors)
        return tracker

    def _report(self, state: State) -> None:
        """Warn of observations that did not count."""
        self._notices.lost(state.lost(), has_ids=self._memory.ids is not None)
        if state.open.looks_like_probabilities:
            self._notices.probabilities()
