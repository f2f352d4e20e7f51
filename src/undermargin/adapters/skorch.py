"""skorch: a callback, a data set whose samples know their index, and the settings that bring the two together.

    net = NeuralNetClassifier(Module, callbacks=[TrackerCallback(tracker)], train_split=None, **INDEXED)
    net.fit(X, fold.labels)

A leaf: nothing else in undermargin imports this module.
"""

from collections.abc import Sequence
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


class Pair(tuple[Any, ...]):
    """(X, y) of a sample or of a batch, with its `index`: to skorch a pair like any other."""

    index: Any

    def __new__(cls, pair: Sequence[Any], index: Any) -> "Pair":  # noqa: D102
        made = super().__new__(cls, pair)
        made.index = index
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Pair, (tuple(self), self.index)  # workers of a loader send their batches to another process


class IndexedDataset(skorch.dataset.Dataset):  # type: ignore[misc, name-defined]
    """skorch's data set, with samples (X, y) that carry their position, also through a `Subset`."""

    def __getitem__(self, i: int) -> Pair:
        return Pair(super().__getitem__(i), int(i))


class IndexedView(Dataset[Pair]):
    """Any data set of samples (X, y), to be passed to `fit`, with their positions."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Pair:
        return Pair(self.dataset[index], int(index))


def collate(samples: Sequence[Any]) -> Any:
    """The batch that torch would make of these samples, with their indices where they carry them."""
    batch = default_collate([tuple(sample) for sample in samples])
    return Pair(batch, torch.tensor([sample.index for sample in samples])) if isinstance(samples[0], Pair) else batch


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
        if not isinstance(batch, Pair):
            raise InputError(
                "the batches do not say which samples they hold. Make the net with **undermargin.adapters.skorch."
                "INDEXED and without pin_memory; wrap a data set of your own in IndexedView"
            )
        outputs = y_pred[0] if isinstance(y_pred, (tuple, list)) else y_pred
        is_logits = not isinstance(net.criterion_, torch.nn.NLLLoss) if self.from_logits is None else self.from_logits
        self.tracker.update(outputs if is_logits else _logs(outputs), batch[1].reshape(-1).long(), batch.index)

    def on_epoch_end(self, net: Any, **_: Any) -> None:  # noqa: ARG002
        """Close the tracker's epoch."""
        self.tracker.end_epoch()


def _logs(probabilities: torch.Tensor) -> torch.Tensor:
    """Logarithms, whose margins are those of the logits."""
    return probabilities.detach().float().clamp(min=torch.finfo(torch.float32).tiny).log()
