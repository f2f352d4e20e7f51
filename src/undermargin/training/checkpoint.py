"""A training, the tracker that watches it and the stop rule, in one file, so that none is ahead of the others."""

import json
from pathlib import Path

from torch import Tensor

from undermargin.storage.tensors import load_tensors, save_tensors
from undermargin.tracking.tracker import Tracker
from undermargin.training.engine import Engine
from undermargin.training.stop import PREFIX as STOP
from undermargin.training.stop import Stop

TRACKER = "tracker."


def save_checkpoint(path: Path, engine: Engine, tracker: Tracker, stop: Stop | None = None) -> None:
    """Write all; the file appears whole or not at all."""
    state = tracker.state_dict()
    tensors = {TRACKER + name: value for name, value in state.items() if isinstance(value, Tensor)}
    about = {name: value for name, value in state.items() if not isinstance(value, Tensor)}
    save_tensors(path, engine.tensors() | tensors | (stop.tensors() if stop else {}), about=json.dumps(about))


def load_checkpoint(path: Path, engine: Engine, tracker: Tracker, stop: Stop | None = None) -> None:
    """Go on from what `save_checkpoint` wrote."""
    about, tensors = load_tensors(path)
    watched = {name.removeprefix(TRACKER): value for name, value in tensors.items() if name.startswith(TRACKER)}
    tracker.load_state_dict(about | watched)
    if stop is not None:
        stop.load(tensors)
    engine.load({name: value for name, value in tensors.items() if not name.startswith((TRACKER, STOP))})
