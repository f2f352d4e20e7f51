"""The tracker: watches a training, gives every sample a score, never changes anything."""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.errors import InputError, NotMergedError, ObservationError, UndermarginWarning
from undermargin.procedure import Fold
from undermargin.storage.tensors import load_tensors, save_tensors
from undermargin.tracking.observations import Ids, as_indices, as_labels, as_logits
from undermargin.tracking.ranks import device_of_ranks, max_over_ranks, num_ranks, rank
from undermargin.tracking.run import Run
from undermargin.tracking.scores import SCORES, check_names
from undermargin.tracking.state import State
from undermargin.tracking.trajectories import Trajectories

Array = npt.NDArray[np.float32]


class Tracker:
    """Watches one training of `num_samples` samples; `scores` names rows of the table of scores.

    `ids` are names to be used in `update` instead of positions. The first `skip_epochs` epochs and those
    from `until_epoch` on are not averaged (the paper stops before the first learning-rate drop).
    `suggest` is the number of classes (without the extra one) among which a better label is suggested for each
    sample; `probabilities` is the same number, and keeps the mean probability of each class for each sample;
    `trajectories` records every epoch on disk, also those that are not averaged.

    Call `end_epoch()` after every epoch: a sample's signals are averaged within an epoch, then over
    epochs. Without any `end_epoch()` every observation counts once; an epoch that is still open does not
    count beside ended ones.

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
        if num_samples < 1:
            raise InputError(f"num_samples is {num_samples}, expected at least 1")
        if skip_epochs < 0 or (until_epoch is not None and until_epoch <= skip_epochs):
            raise InputError(f"skip_epochs={skip_epochs} and until_epoch={until_epoch} leave no epoch to average")
        for name, number in (("suggest", suggest), ("probabilities", probabilities)):
            if number is True or (number is not None and number < 2):
                raise InputError(f"{name}={number} must be the number of classes, such as fold.num_classes")
        if trajectories is not None:
            trajectories.check(num_samples)
        self.score_names = check_names(scores)
        # plain numbers: NumPy's could not be written
        self.num_samples = int(num_samples)
        self.skip_epochs = int(skip_epochs)
        self.until_epoch = None if until_epoch is None else int(until_epoch)
        self.suggest = None if suggest is None else int(suggest)
        self.num_probabilities = None if probabilities is None else int(probabilities)
        self.trajectories = trajectories
        self.epoch = 0  # epochs ended so far
        self._ids = None if ids is None else Ids(ids, num_samples)
        self._lacking: str | None = None  # the digest of ids that a loaded state had and this tracker has not
        self._state: State | None = None  # made when the first batch tells device and number of outputs
        self._warned: set[str] = set()

    def update(self, logits: Any, labels: Any, indices: Any) -> None:
        """Observe a batch: logits (batch, classes), labels (batch,), indices (batch,) or ids.

        Takes what the training step has at hand, on whatever device; waits for nothing.
        """
        if torch.compiler.is_compiling():  # the step is compiled, what watches it is not
            torch.compiler.disable(self._observe)(logits, labels, indices)  # type: ignore[no-untyped-call]
        else:
            self._observe(logits, labels, indices)

    def _observe(self, logits: Any, labels: Any, indices: Any) -> None:
        if self._lacking is not None:
            raise InputError("the samples of this state have ids; give them again, as in Tracker.load(path, ids=names)")
        if not torch.is_grad_enabled() and not getattr(logits, "requires_grad", False):
            self._warn_once(
                "observed a batch with gradients disabled, as in a validation loop. Only training steps should "
                "pass through update(); if this is one, ignore this warning",
                depth=2,
            )
        logits = as_logits(logits)
        labels = as_labels(labels, logits)
        indices = (as_indices if self._ids is None else self._ids.indices)(indices, logits)
        if len(logits) and (self._counts() or self.trajectories is not None):
            self._state_for(logits).update(logits, labels, indices)

    def end_epoch(self) -> None:
        """Close the epoch: its mean counts once for every sample seen in it. Merges the ranks."""
        self.reduce()
        if self._state is not None:
            if self.trajectories is not None and rank() == 0:
                self._state.open.record(self.trajectories, self.epoch)
            if self._counts():
                self._state.end_epoch()
            else:
                self._state.drop_epoch()
            self._report()
        self.epoch += 1

    def reduce(self) -> None:
        """Merge the open epoch of all ranks, on all ranks. In a job of one process nothing needs merging."""
        if num_ranks() > 1:
            outputs = self._state.num_outputs if self._state else 0
            recorded = -1 if self.trajectories is None else len(self._logits_of())
            agreed = torch.tensor([outputs, recorded, -recorded], device=device_of_ranks())
            max_over_ranks(agreed)
            outputs, most, fewest = agreed.tolist()
            if most != -fewest:
                raise InputError("the ranks differ in what they record; give every rank the same trajectories=")
            if self._state is None and outputs > 0:  # nothing came by here, but it did elsewhere
                self._state = self._allocate(outputs, device_of_ranks())
        if self._state is not None:
            self._state.reduce()

    def scores(self, name: str = "aum") -> Array:
        """One number a sample, low = suspicious, nan = never observed: (samples,). Never talks to other ranks."""
        if name not in self.score_names:
            raise InputError(f"{name!r} was not tracked; ask for it with Tracker(n, scores=({name!r}, ...))")
        if (self.skip_epochs or self.until_epoch is not None) and not self.epoch:
            raise ObservationError("skip_epochs and until_epoch need epochs: call end_epoch() after every epoch")
        if self._state is None:
            return np.full(self.num_samples, np.nan, np.float32)
        if self.epoch == 0 and SCORES[name].needs_epochs:
            raise ObservationError(f"{name} compares epochs: call end_epoch() after every epoch")
        self._check_merged("scores")
        self._report()
        if self.epoch and self._counts() and (waiting := self._state.num_open()):
            self._warn_once(f"{waiting} observations since the last end_epoch() do not count; is one call missing?")
        values, seen = self._state.scores(name, has_epochs=self.epoch > 0)
        return (SCORES[name].sign * values).where(seen, torch.nan).cpu().numpy()

    @property
    def lost(self) -> dict[str, int]:
        """Observations that did not count, by reason."""
        return {} if self._state is None else self._state.lost()

    def suggestions(self) -> tuple[npt.NDArray[np.int64], Array]:
        """The class that most often beat the label (-1: none), and in what share of the epochs: (samples,) twice."""
        if not self.suggest:
            raise InputError("suggestions were not tracked; ask for them with Tracker(n, suggest=num_classes)")
        if self.epoch == 0 and self._state is not None:
            raise ObservationError("suggestions are votes of epochs: call end_epoch() after every epoch")
        if self._state is None or self._state.suggestions is None:
            return np.full(self.num_samples, -1), np.full(self.num_samples, np.nan, np.float32)
        best, share = self._state.suggestions.best(self._state.epochs)
        return best.cpu().numpy().astype(np.int64), share.float().cpu().numpy()

    def probabilities(self) -> Array:
        """Mean probability of each class over the epochs, without the extra output: (samples, classes).

        For threshold samples this is a held-out prediction: the network is never shown their real label.
        """
        if not self.num_probabilities:
            raise InputError("probabilities were not tracked; ask for them with Tracker(n, probabilities=num_classes)")
        if self.epoch == 0 and self._state is not None:
            raise ObservationError("probabilities are means over epochs: call end_epoch() after every epoch")
        if self._state is None or self._state.probabilities is None:
            return np.full((self.num_samples, self.num_probabilities), np.nan, np.float32)
        return (self._state.probabilities / self._state.epochs[:, None]).cpu().numpy()

    def run(
        self,
        fold: Fold | None = None,
        *,
        ids: Sequence[Any] | None = None,
        class_names: Sequence[str] | None = None,
        score: str = "aum",
    ) -> Run:
        """What this training left behind, for `identify`."""
        if score in self.score_names and not SCORES[score].is_directed:
            raise InputError(f"{score} has no suspicious direction: neither end of it can be judged alone")
        if ids is None and self._ids is not None:
            ids = list(self._ids.positions)
        about: dict[str, Any] = {"ids": ids, "class_names": class_names, "score": score}
        if fold is not None:
            about |= {"is_threshold": fold.is_threshold, "labels": fold.assigned_labels, "fold": fold.number}
        if self.suggest:
            classes, share = self.suggestions()
            about |= {"suggested_labels": classes, "suggestion_confidence": share}
        if self.num_probabilities:
            about["probabilities"] = self.probabilities()
        return Run(scores=self.scores(score), **about)

    def merge(self, later: "Tracker") -> None:
        """Append what another tracker observed: its ended epochs follow ours, the open epochs become one.

        Trackers that share one epoch's batches are therefore merged before `end_epoch()`.
        """
        if self._settings() != later._settings():
            raise InputError(f"trackers differ in their settings: {self._settings()} and {later._settings()}")
        if self._digest() != later._digest():
            raise InputError("trackers differ in their ids: the same position means different samples")
        if self.epoch and later.epoch and (self.skip_epochs or self.until_epoch is not None):
            raise InputError(
                f"both trackers have ended epochs, and each left out others than one tracker of all {self.epoch} + "
                f"{later.epoch} would: merge trackers without skip_epochs and until_epoch, or before end_epoch()"
            )
        if not np.array_equal(self._logits_of(), later._logits_of()):
            raise InputError("trackers record the full logits of different samples (logits_of)")
        if later._state is not None:
            if self._state is None:
                self._state = self._allocate(later._state.num_outputs, later._state.device)
            if self._state.num_outputs != later._state.num_outputs:
                outputs = (self._state.num_outputs, later._state.num_outputs)
                raise InputError(f"trackers watched networks with {outputs[0]} and {outputs[1]} outputs")
            self._state.follow(later._state)
        self.epoch += later.epoch

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on from here, also in mid-epoch, also with another number of ranks."""
        state = self._live_state()
        return {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}

    def _live_state(self) -> dict[str, Any]:
        self._check_merged("state_dict")
        state = {"settings": self._settings(), "ids": self._digest(), "epoch": self.epoch, "num_outputs": 0}
        if self._state is None:
            return state
        return state | {"num_outputs": self._state.num_outputs} | dict(self._state.tensors())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict` of a tracker with the same settings."""
        if {"probabilities": None, **(state.get("settings") or {})} != self._settings():  # version 0.1 kept none
            raise InputError(f"this state is of a tracker with {state.get('settings')}, not {self._settings()}")
        ids = state.get("ids")
        if self._ids is not None and ids != self._ids.digest:
            raise InputError(
                "this state is of a tracker with other ids, or with the same in another order, or without any: "
                "the same position means different samples"
            )
        loaded = None
        if state["num_outputs"]:
            tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
            loaded = self._allocate(int(state["num_outputs"]), next(iter(tensors.values())).device)
            loaded.load(tensors)
        self.epoch, self._state = int(state["epoch"]), loaded
        self._lacking = ids if self._ids is None else None

    def save(self, path: str | Path) -> None:
        """Write the state as safetensors; the file appears whole or not at all."""
        state = self._live_state()
        tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
        about = {name: value for name, value in state.items() if name not in tensors}
        save_tensors(path, tensors, about=json.dumps(about))

    @classmethod
    def load(cls, path: str | Path, **unsaved: Any) -> "Tracker":
        """Read what `save` wrote; `ids=`, to go on, and `trajectories=` are not part of it and must be given again."""
        about, tensors = load_tensors(path)
        if "settings" not in about:
            raise InputError(f"{path} does not hold a tracker; it was saved by something else")
        settings = about["settings"]
        tracker = cls(settings.pop("num_samples"), settings.pop("scores"), **settings, **unsaved)
        tracker.load_state_dict(about | tensors | {"settings": tracker._settings()})
        return tracker

    def _state_for(self, logits: Tensor) -> State:
        """The state, made for the first batch, and moved where batches come from another device after a load."""
        if self._state is None:
            self._state = self._allocate(logits.shape[1], logits.device)
        elif logits.shape[1] != self._state.num_outputs:
            raise InputError(f"logits have {logits.shape[1]} classes, before they had {self._state.num_outputs}")
        elif logits.device != self._state.device:
            tensors = dict(self._state.tensors())
            self._state = self._allocate(logits.shape[1], logits.device)
            self._state.load(tensors)
        return self._state

    def _allocate(self, num_outputs: int, device: torch.device) -> State:
        chosen = torch.from_numpy(self._logits_of()) if len(self._logits_of()) else None
        names = self.score_names
        with torch.inference_mode(False):  # a tensor made in inference mode could not be written to outside
            return State(
                self.num_samples,
                names,
                num_outputs,
                device,
                suggest=self.suggest,
                probabilities=self.num_probabilities,
                logits_of=chosen,
            )

    def _logits_of(self) -> npt.NDArray[np.int64]:
        return np.empty(0, np.int64) if self.trajectories is None else self.trajectories.logits_of

    def _settings(self) -> dict[str, Any]:
        return {
            "num_samples": self.num_samples,
            "scores": list(self.score_names),
            "skip_epochs": self.skip_epochs,
            "until_epoch": self.until_epoch,
            "suggest": self.suggest,
            "probabilities": self.num_probabilities,
        }

    def _digest(self) -> str | None:
        """Of the ids by which the samples are known; None: by their positions."""
        return self._lacking if self._ids is None else self._ids.digest

    def _counts(self) -> bool:
        """Whether the open epoch is one of those to average."""
        return self.epoch >= self.skip_epochs and (self.until_epoch is None or self.epoch < self.until_epoch)

    def _check_merged(self, reader: str) -> None:
        if self._state is not None and not self._state.is_merged and (self.epoch == 0 or reader == "state_dict"):
            raise NotMergedError(
                f"{reader}() was called with observations that only this one of {num_ranks()} ranks has. "
                "Call reduce() or end_epoch() on all ranks first; both are collectives"
            )

    def _report(self) -> None:
        """Say once, for each reason, that observations did not count."""
        assert self._state is not None  # noqa: S101 - both callers have seen it
        for reason, count in self._state.lost().items():
            if reason != "negative label":  # the usual way to say "ignore this one"
                advice = _UNKNOWN_ID if reason == "index out of range" and self._ids is not None else _ADVICE[reason]
                self._warn_once(f"{reason}: {count} observations did not count. {advice}", key=reason, depth=2)
        if self._state.open.looks_like_probabilities:
            self._warn_once(
                "the logits of the first batch are probabilities: none is negative and they sum to 1. "
                "Margins of probabilities flatten; pass the output before softmax, or its logarithm",
                depth=2,
            )

    def _warn_once(self, message: str, key: str = "", depth: int = 1) -> None:
        """Warn, at most once, of the line that called a method of ours, `depth` calls from here."""
        if (key or message) not in self._warned:
            self._warned.add(key or message)
            warnings.warn(f"Tracker: {message}", UndermarginWarning, stacklevel=depth + 2)


_ADVICE = {
    "non-finite logits": "One overflow in half precision is harmless; many mean that the training diverges",
    "label too large": "Labels must be below the number of outputs; with threshold samples the network needs one more",
    "index out of range": "Indices are positions 0..n-1 in the training set; was n smaller than the data set?",
}
_UNKNOWN_ID = "They came with ids that are none of those given as Tracker(n, ids=...)"
