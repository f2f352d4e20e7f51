"""skorch: a callback, a data set that tells the positions of its samples, and the settings that bring the two together.

    net = NeuralNetClassifier(Module, callbacks=[TrackerCallback(tracker)], train_split=None, **INDEXED)
    net.fit(X, fold.labels)

A leaf: nothing else in undermargin imports this module.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch.utils.data import Dataset, default_collate

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.errors import InputError

skorch = require("skorch", "skorch")
require("skorch.callbacks", "skorch")
require("skorch.dataset", "skorch")


class Samples(list[Any]):
    """Samples (X, y) with the positions that they have in the training set."""

    def __init__(self, samples: Iterable[Any], indices: Sequence[int]) -> None:
        super().__init__(samples)
        self.indices = indices


class Batch(tuple[Any, ...]):
    """(X, y) of a batch, with `indices`: to skorch a pair like any other."""

    indices: torch.Tensor

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (tuple(self), self.indices)  # workers of a loader send their batches to another process


class IndexedDataset(skorch.dataset.Dataset):  # type: ignore[misc, name-defined]
    """skorch's data set, which tells a loader the positions of the samples it fetches, also through a `Subset`."""

    def __getitems__(self, indices: Sequence[int]) -> Samples:
        """What a loader asks for to make a batch."""
        return Samples([self[index] for index in indices], indices)


class IndexedView(Dataset[Any]):
    """Any data set of samples (X, y), to be passed to `fit`; it tells a loader the positions of the samples."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: Sequence[int]) -> Samples:
        """What a loader asks for to make a batch."""
        return Samples([self.dataset[index] for index in indices], indices)


def collate(samples: Any) -> Any:
    """The batch that torch would make of these samples, with their positions where they are known."""
    batch = default_collate(samples)
    return _batch(batch, torch.tensor(samples.indices)) if isinstance(samples, Samples) else batch


def _batch(pair: Sequence[Any], indices: torch.Tensor) -> Batch:
    batch = Batch(pair)
    batch.indices = indices
    return batch


# Settings for any net: NeuralNetClassifier(Module, ..., **INDEXED)
INDEXED = {"dataset": IndexedDataset, "iterator_train__collate_fn": collate}


class TrackerCallback(skorch.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Feeds the training batches of a net to a tracker; every call of `fit` starts the tracker again.

    `from_logits` says whether the module's output are logits; by default it is, unless the net's criterion is NLLLoss,
    for which skorch expects probabilities. A clone of the net, as in a grid search, has a copy of the tracker: read it
    from the clone's `callbacks_`.
    """

    start_: dict[str, Any]  # of the tracker, when a net first saw it

    def __init__(self, tracker: Tracker, from_logits: bool | None = None) -> None:
        self.tracker = tracker
        self.from_logits = from_logits

    def initialize(self) -> "TrackerCallback":
        """Start the tracker where it was when a net first saw it."""
        if hasattr(self, "start_"):
            self.tracker.load_state_dict(self.start_)
        else:
            self.start_ = self.tracker.state_dict()
        return self

    def __sklearn_clone__(self) -> "TrackerCallback":
        tracker = deepcopy(self.tracker)
        if hasattr(self, "start_"):
            tracker.load_state_dict(self.start_)
        return type(self)(tracker, self.from_logits)

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **_: Any) -> None:  # noqa: ARG002, N803
        """Compare the sizes, while it is cheap to start again."""
        size = skorch.dataset.get_len(X)
        if size != self.tracker.num_samples:
            raise InputError(f"the tracker is for {self.tracker.num_samples} samples, but the net is fitted on {size}")

    def on_batch_end(self, net: Any, batch: Any = None, training: bool = False, y_pred: Any = None, **_: Any) -> None:
        """Observe a training batch; validation batches are left alone."""
        if not training:
            return
        if not isinstance(batch, Batch):
            raise InputError(
                "the batches do not say which samples they hold. Make the net with **undermargin.adapters.skorch."
                "INDEXED and without pin_memory; wrap a data set of your own in IndexedView"
            )
        outputs = y_pred[0] if isinstance(y_pred, (tuple, list)) else y_pred
        is_logits = not isinstance(net.criterion_, torch.nn.NLLLoss) if self.from_logits is None else self.from_logits
        self.tracker.update(outputs if is_logits else _logs(outputs), batch[1].reshape(-1).long(), batch.indices)

    def on_epoch_end(self, net: Any, **_: Any) -> None:  # noqa: ARG002
        """Close the tracker's epoch."""
        self.tracker.end_epoch()


def _logs(probabilities: torch.Tensor) -> torch.Tensor:
    """Logarithms, whose margins are those of the logits."""
    return probabilities.detach().float().clamp(min=torch.finfo(torch.float32).tiny).log()
