"""A training and the tracker that watches it, in one file, so that neither is ahead of the other."""

import json
from pathlib import Path

from torch import Tensor

from undermargin.files import load_tensors, save_tensors
from undermargin.tracker import Tracker
from undermargin.training.network import Training

TRACKER = "tracker."


def save_checkpoint(path: Path, training: Training, tracker: Tracker) -> None:
    """Write both; the file appears whole or not at all."""
    state = tracker.state_dict()
    tensors = {TRACKER + name: value for name, value in state.items() if isinstance(value, Tensor)}
    about = {name: value for name, value in state.items() if not isinstance(value, Tensor)}
    save_tensors(path, training.tensors() | tensors, about=json.dumps(about))


def load_checkpoint(path: Path, training: Training, tracker: Tracker) -> None:
    """Go on from what `save_checkpoint` wrote."""
    about, tensors = load_tensors(path)
    watched = {name.removeprefix(TRACKER): value for name, value in tensors.items() if name.startswith(TRACKER)}
    tracker.load_state_dict(about | watched)
    training.load({name: value for name, value in tensors.items() if not name.startswith(TRACKER)})
