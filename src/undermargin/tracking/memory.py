"""The memory of a tracker: its state with what identifies it, to be merged, saved and resumed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undermargin.errors import InputError, NotMergedError
from undermargin.tracking.observations import Ids
from undermargin.tracking.ranks import agree, device_of_ranks, num_ranks
from undermargin.tracking.settings import Settings
from undermargin.tracking.state import State
from undermargin.tracking.trajectories import Trajectories


class Memory:
    """The number of ended epochs and the state, which is created by the first batch or by loading."""

    def __init__(self, settings: Settings, ids: Ids | None, trajectories: Trajectories | None) -> None:
        self.settings = settings
        self.ids = ids
        self.missing_ids: str | None = None  # digest of the ids of a loaded state that were not given again
        self.num_recorded = -1 if trajectories is None else len(trajectories.logits_of)
        self.logits_of = np.empty(0, np.int64) if trajectories is None else trajectories.logits_of
        self.epoch = 0  # number of ended epochs
        self.state: State | None = None  # the first batch tells device and number of outputs

    @property
    def is_open(self) -> bool:
        """Whether the open epoch is one of those to average."""
        return self.settings.counts(self.epoch)

    @property
    def digest(self) -> str | None:
        """Hash of the ids of the samples; None if they have none."""
        return self.missing_ids if self.ids is None else self.ids.digest

    def state_for(self, logits: Tensor) -> State:
        """The state, created for the first batch, and moved if batches come from another device."""
        if self.state is None:
            self.state = self._new_state(logits.shape[1], logits.device)
        elif logits.shape[1] != self.state.num_outputs:
            raise InputError(f"logits have {logits.shape[1]} classes, expected {self.state.num_outputs} as before")
        elif logits.device != self.state.device:
            self.state = self.state.on(logits.device)
        return self.state

    def _new_state(self, num_outputs: int, device: torch.device) -> State:
        chosen = torch.from_numpy(self.logits_of) if len(self.logits_of) else None
        return State(self.settings, num_outputs, device, logits_of=chosen)

    def reduce(self) -> None:
        """Merge the open epoch of all ranks, on all ranks."""
        if num_ranks() > 1:
            outputs = agree(self.state.num_outputs if self.state else 0, self.num_recorded)
            if self.state is None and outputs > 0:  # only other ranks have observed batches
                self.state = self._new_state(outputs, device_of_ranks())
        if self.state is not None:
            self.state.reduce()

    def check_merged(self, reader: str) -> None:
        """Raise an error if `reader` would see only the observations of this rank."""
        if self.state is not None and not self.state.is_merged and (self.epoch == 0 or reader == "state_dict"):
            raise NotMergedError(
                f"{reader}() was called with observations that only this one of {num_ranks()} ranks has. "
                "Call reduce() or end_epoch() on all ranks first; both are collectives"
            )

    def merge(self, later: "Memory") -> None:
        """Append the ended epochs of another memory; the open epochs become one."""
        self._check_mergeable(later)
        if later.state is not None:
            if self.state is None:
                self.state = self._new_state(later.state.num_outputs, later.state.device)
            self.state.follow(later.state)
        self.epoch += later.epoch

    def _check_mergeable(self, later: "Memory") -> None:
        if self.settings != later.settings:
            settings = self.settings.as_dict(), later.settings.as_dict()
            raise InputError(f"trackers differ in their settings: {settings[0]} and {settings[1]}")
        if self.digest != later.digest:
            raise InputError("trackers differ in their ids: the same position means different samples")
        if self.epoch and later.epoch and self.settings.selects_epochs:
            raise InputError(
                f"both trackers have ended epochs ({self.epoch} and {later.epoch}), and each left some of its own out; "
                "merge trackers without skip_epochs and until_epoch, or before end_epoch()"
            )
        if not np.array_equal(self.logits_of, later.logits_of):
            raise InputError("trackers record the full logits of different samples (logits_of)")
        outputs = [state.num_outputs for state in (self.state, later.state) if state is not None]
        if len(set(outputs)) > 1:
            raise InputError(f"trackers observed networks with {outputs[0]} and {outputs[1]} outputs")

    def as_dict(self) -> dict[str, Any]:
        """Everything needed to resume; the tensors are not copied."""
        self.check_merged("state_dict")
        outputs = self.state.num_outputs if self.state else 0
        plain = {"settings": self.settings.as_dict(), "ids": self.digest, "epoch": self.epoch, "num_outputs": outputs}
        return plain | (dict(self.state.tensors()) if self.state else {})

    def load(self, saved: Mapping[str, Any]) -> None:
        """Resume from what `as_dict` returned; an error changes nothing."""
        self.settings.check_saved(saved.get("settings"))
        ids = saved.get("ids")
        if self.ids is not None and ids != self.ids.digest:
            raise InputError(
                "this state is of a tracker with other ids, the same ids in another order, or without ids: "
                "the same position means different samples"
            )
        state = None
        if saved["num_outputs"]:
            tensors = {name: value for name, value in saved.items() if isinstance(value, Tensor)}
            state = self._new_state(int(saved["num_outputs"]), next(iter(tensors.values())).device)
            state.load(tensors)
        self.epoch, self.state = int(saved["epoch"]), state
        self.missing_ids = ids if self.ids is None else None
