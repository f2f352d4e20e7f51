"""Ray Train: the tracker travels with Ray's checkpoints, through failures and back to the driver.

    def train_loop(config):                        # runs in every worker
        tracker = Tracker(num_samples)
        restore(tracker)                           # after a failure Ray starts the loop again
        for epoch in range(tracker.epoch, epochs):
            ...                                    # tracker.update(logits, labels, indices) in every step
            tracker.end_epoch()                    # merges the workers
            report(tracker, {"loss": loss.item()})

    result = TorchTrainer(train_loop, ...).fit()
    run = load(result).run(fold)

A leaf: nothing in undermargin imports it.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.errors import InputError

__all__ = ["load", "report", "restore"]

_train: Any = require("ray.train", "ray")


def report(
    tracker: Tracker, metrics: Mapping[str, Any], folder: str | Path | None = None, *, name: str = "undermargin"
) -> None:
    """Report metrics to Ray with a checkpoint that holds the tracker; every worker must call it.

    `folder` is what the training itself saves, such as the model's weights; the tracker is written into it as
    `name`.safetensors, so that one folder can hold the trackers of several folds.
    """
    tracker.reduce()
    with TemporaryDirectory() if folder is None else nullcontext(str(folder)) as path:
        if _train.get_context().get_world_rank() == 0:
            tracker.save(_file(path, name))
        has_files = any(Path(path).iterdir())
        _train.report(dict(metrics), checkpoint=_train.Checkpoint.from_directory(path) if has_files else None)


def restore(tracker: Tracker, *, name: str = "undermargin") -> bool:
    """Go on from the checkpoint that Ray resumes from; False where there is none, or none with this tracker."""
    checkpoint = _train.get_checkpoint()
    if checkpoint is None:
        return False
    with checkpoint.as_directory() as folder:
        path = _file(folder, name)
        if path.exists():
            tracker.load_state_dict(Tracker.load(path).state_dict())
        return path.exists()


def load(result: Any, *, name: str = "undermargin") -> Tracker:
    """The tracker of a finished training, in the driver: as the last `report` saved it."""
    if result.checkpoint is None:
        raise InputError("Ray kept no checkpoint. Call report(tracker, metrics) after tracker.end_epoch() in the loop")
    with result.checkpoint.as_directory() as folder:
        path = _file(folder, name)
        if not path.exists():
            names = ", ".join(sorted(one.stem for one in Path(folder).glob("*.safetensors"))) or "none"
            raise InputError(f"Ray's last checkpoint holds no tracker called {name!r}; it holds {names}")
        return Tracker.load(path)


def _file(folder: str, name: str) -> Path:
    return Path(folder) / f"{name}.safetensors"
