"""From a framework's batch and output to `Tracker.update`, and from its epochs to `Tracker.end_epoch`."""

from collections.abc import Callable, Mapping
from typing import Any

from undermargin import Tracker
from undermargin.errors import InputError

# where something is in a batch: a position, a key, a function of the batch; None: as the views of data sets have it
Where = int | str | Callable[[Any], Any] | None

_WRAP = "Wrap the data set: IndexedDataset(dataset) adds the indices; or say where they are with indices="


class Observer:
    """Feeds batches to a tracker and ends its epochs with those of the training, also across a resume."""

    def __init__(self, tracker: Tracker, labels: Where, indices: Where) -> None:
        self.tracker = tracker
        self.labels = labels
        self.indices = indices
        self.open_epoch: int | None = None  # the training's number of the epoch that the tracker has open

    def observe(self, output: Any, batch: Any) -> None:
        """Show a training step to the tracker."""
        self.tracker.update(logits_of(output), labels_of(batch, self.labels), indices_of(batch, self.indices))

    def enter(self, epoch: int) -> None:
        """Go on in this epoch.

        A checkpoint written after the last batch of an epoch but before its end leaves that epoch open, and a training
        that resumes from it starts with the next one.
        """
        if self.open_epoch != epoch:
            self.end_epoch()
            self.open_epoch = epoch

    def end_epoch(self) -> None:
        """End the tracker's epoch if one is open."""
        if self.open_epoch is not None:
            self.tracker.end_epoch()
            self.open_epoch = None

    def state_dict(self) -> dict[str, Any]:
        """The tracker and where it is. Merges the ranks first, so every rank must call it."""
        self.tracker.reduce()
        return {"tracker": self.tracker.state_dict(), "open_epoch": self.open_epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
        self.tracker.load_state_dict(state["tracker"])
        self.open_epoch = state["open_epoch"]


def logits_of(output: Any, key: str = "logits") -> Any:
    """The logits of a model's or a training step's output: the tensor itself, or its entry `key`."""
    if isinstance(output, Mapping):
        if key not in output:
            entries = ", ".join(map(str, output)) or "nothing"
            raise InputError(f"the output has no entry {key!r}, only {entries}; return it beside the loss")
        return output[key]
    return getattr(output, key, output)


def labels_of(batch: Any, where: Where) -> Any:
    """The labels of a batch; by default its second entry, or its entry "label" or "labels"."""
    if where is None:
        where = ("label" if "label" in batch else "labels") if isinstance(batch, Mapping) else 1
    return entry(batch, where, "labels", "Say where they are with labels=")


def indices_of(batch: Any, where: Where) -> Any:
    """The indices of a batch; by default where `IndexedDataset` puts them: the last entry, or the entry "index"."""
    if where is None:
        if not isinstance(batch, Mapping) and len(batch) < 3:
            raise InputError(f"the batch has {len(batch)} entries, so none of them holds indices. {_WRAP}")
        where = "index" if isinstance(batch, Mapping) else -1
    return entry(batch, where, "indices", _WRAP)


def entry(batch: Any, where: int | str | Callable[[Any], Any], name: str, advice: str) -> Any:
    """What is at a place of a batch or an output; `name` and `advice` are for the error where nothing is there."""
    if callable(where):
        return where(batch)
    try:
        return batch[where]
    except (KeyError, IndexError, TypeError):
        have = f"entries {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else f"{len(batch)} entries"
        kind = type(batch).__name__
        raise InputError(f"there are no {name} at {where!r} of a {kind} with {have}. {advice}") from None
