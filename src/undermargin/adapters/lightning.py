"""Lightning: a callback that shows every training step to a tracker.

    callback = TrackerCallback(Tracker(len(dataset)))
    Trainer(callbacks=[callback], ...).fit(module, DataLoader(IndexedDataset(dataset), shuffle=True))
    run = callback.tracker.run(fold)

A leaf: nothing in undermargin imports it.
"""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.util import find_spec
from typing import Any

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.adapters._observer import Observer, Where
from undermargin.errors import InputError

__all__ = ["TrackerCallback"]

_NAMES = ("lightning.pytorch", "pytorch_lightning")  # one library, but a trainer of one refuses callbacks of the other


def _bases() -> tuple[Any, ...]:
    """The callback classes of the Lightning that was imported, else of the one that is installed."""
    imported = [name for name in _NAMES if name in sys.modules]
    installed = [name for name in _NAMES if find_spec(name.partition(".")[0])]
    names = imported or installed[:1] or _NAMES[:1]
    return tuple(require(name, "lightning").Callback for name in names)


_RETURN_LOGITS = 'Return {"loss": loss, "logits": logits} from training_step'


class TrackerCallback(*_bases()):  # type: ignore[misc]
    """Shows every training step to `tracker` and ends its epochs; the training is not changed.

    Logits come from what `training_step` returns, {"loss": ..., "logits": ...}. Where it returns the loss alone, they
    are the output of the `submodule` of this name, such as "net" or "net.head".

    `labels` and `indices` say where these are in a batch: a position, a key, or a function of the batch. Without them
    batches are (x, label, index) or {"label": ..., "index": ...}, as `IndexedDataset` makes them. `hide_indices` takes
    the indices off before `training_step` gets the batch, so that it can stay as it was.

    The tracker is part of Lightning's checkpoints; `name` tells several callbacks apart in them.
    """

    def __init__(
        self,
        tracker: Tracker,
        *,
        submodule: str | None = None,
        labels: Where = None,
        indices: Where = None,
        hide_indices: bool = False,
        name: str = "",
    ) -> None:
        if hide_indices and callable(indices):
            raise InputError("hide_indices=True needs indices= as a position or a key, not as a function")
        self.tracker = tracker
        self.submodule = submodule
        self.hide_indices = hide_indices
        self.name = name
        self._observer = Observer(tracker, labels, indices)
        self._batch: Any = None  # of the training step under way
        self._num_outputs = 0  # of the submodule in this step
        self._num_observed = self._num_skipped = 0  # steps of this epoch
        self._undo: list[Callable[[], None]] = []

    @property
    def state_key(self) -> str:
        """The key of this callback's state in Lightning's checkpoints."""
        return f"TrackerCallback({self.name})"

    def state_dict(self) -> dict[str, Any]:
        """The tracker's state for Lightning's checkpoint; merges the ranks, so every rank must call it."""
        return self._observer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from Lightning's checkpoint."""
        self._observer.load_state_dict(state_dict)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002, D102
        if self.submodule is not None:
            try:
                module = pl_module.get_submodule(self.submodule)
            except AttributeError:
                names = ", ".join(name for name, _ in pl_module.named_children())
                raise InputError(f"the module has no submodule {self.submodule!r}; it has {names}") from None
            self._undo.append(module.register_forward_hook(self._on_output).remove)
        if self.hide_indices:
            self._undo.append(_hide_indices(pl_module, self._observer.indices))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002, D102
        self._observer.enter(trainer.current_epoch)
        self._batch, self._num_outputs = batch, 0

    def _on_output(self, module: Any, inputs: Any, output: Any) -> None:  # noqa: ARG002
        if self._batch is None:
            return  # validation, or a forward pass outside of a training step
        if self._num_outputs:
            raise InputError(
                f"submodule {self.submodule!r} was called twice in one training step, so it is unknown which output "
                f"holds the logits of the batch. {_RETURN_LOGITS} instead of naming a submodule"
            )
        self._num_outputs = 1
        self._observer.observe(output, self._batch)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002, D102
        self._batch = None
        if self.submodule is None and outputs:
            self._observer.observe(self._returned(outputs), batch)
        elif self._num_outputs == 0 and outputs:
            raise InputError(
                f"submodule {self.submodule!r} was not called in a training step: its parts were called directly, or "
                f"another module was. Name the module that training_step calls. {_RETURN_LOGITS} if there is none"
            )
        is_skipped = self._num_outputs == 0 and not outputs  # training_step returned None
        self._num_skipped += is_skipped
        self._num_observed += not is_skipped

    def _returned(self, outputs: Any) -> Any:
        if not isinstance(outputs, Mapping) or "logits" not in outputs:
            raise InputError(
                f"training_step returned no logits. {_RETURN_LOGITS}, or name the submodule whose output they are: "
                'TrackerCallback(tracker, submodule="net")'
            )
        return outputs["logits"]

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002, D102
        if self._num_skipped and not self._num_observed:
            raise InputError(
                f"training_step returned None in all {self._num_skipped} steps of the epoch, so there was nothing to "
                f"observe. {_RETURN_LOGITS}"
            )
        self._batch = None  # where the module cut the epoch short, its last batch has no end
        self._num_observed = self._num_skipped = 0
        self._observer.end_epoch()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002, D102
        self._observer.end_epoch()  # open only where a finished training was resumed: no epoch of it was run
        self._detach()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002, D102
        self._batch = None
        self._detach()

    def _detach(self) -> None:
        while self._undo:
            self._undo.pop()()


def _hide_indices(pl_module: Any, where: Where) -> Callable[[], None]:
    """Make `training_step` get its batches without the indices; returns what restores it."""
    original, own = pl_module.training_step, vars(pl_module).get("training_step")

    @wraps(original)
    def training_step(batch: Any, *rest: Any, **named: Any) -> Any:
        return original(_without(batch, where), *rest, **named)

    def restore() -> None:
        if own is None:
            del pl_module.training_step
        else:
            pl_module.training_step = own

    pl_module.training_step = training_step
    return restore


def _without(batch: Any, where: Where) -> Any:
    if isinstance(batch, Mapping):
        key = "index" if where is None else where
        return {name: value for name, value in batch.items() if name != key}
    position = -1 if where is None else where
    if not isinstance(position, int):
        return batch  # a key of a batch without keys: observing it raises the error
    entries = list(batch)
    del entries[position]
    return entries
