"""PyTorch Ignite: the handlers of an engine show every iteration to a tracker.

    state = observe(trainer, tracker)  # trainer: an Engine whose output has "logits"
    trainer.run(DataLoader(IndexedDataset(dataset), shuffle=True), max_epochs=20)
    run = tracker.run(fold)

A leaf: nothing in undermargin imports it.
"""

from collections.abc import Mapping
from typing import Any

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.adapters._observer import Observer, Where, entry
from undermargin.errors import InputError

__all__ = ["observe"]

_Events: Any = require("ignite.engine", "ignite").Events


def observe(
    engine: Any, tracker: Tracker, *, logits: Where = None, labels: Where = None, indices: Where = None
) -> Observer:
    """Show every iteration of a training `engine` to `tracker`, and end its epochs with the engine's.

    `logits` says where these are in the engine's output, `labels` and `indices` where they are in its batches: a
    position, a key, or a function. Without them the output is {"logits": ...} and batches are (x, label, index) or
    {"label": ..., "index": ...}, as `IndexedDataset` makes them.

    Returns what Ignite's `Checkpoint` saves and loads: Checkpoint({"tracker": observe(...), ...}, ...). Call `observe`
    before handlers that save are attached: Ignite runs handlers in the order in which they were attached.
    """
    observer = Observer(tracker, labels, indices)

    def on_iteration() -> None:
        observer.enter(engine.state.epoch)
        observer.observe(_logits(engine.state.output, logits), engine.state.batch)

    engine.add_event_handler(_Events.ITERATION_COMPLETED, on_iteration)
    engine.add_event_handler(_Events.EPOCH_COMPLETED, observer.end_epoch)
    engine.add_event_handler(_Events.COMPLETED, observer.end_epoch)  # stopped in mid-epoch: what was seen counts
    return observer


def _logits(output: Any, where: Where) -> Any:
    where = "logits" if where is None else where
    if isinstance(where, str) and not (isinstance(output, Mapping) and where in output):
        raise InputError(
            f"the engine's output is a {type(output).__name__} without an entry {where!r}. Let the step return "
            '{"loss": ..., "logits": ...}: for create_supervised_trainer, output_transform=lambda x, y, y_pred, loss: '
            '{"loss": loss.item(), "logits": y_pred}'
        )
    return entry(output, where, "logits", "Say where they are with logits=")
