import os

# One thread for each test process and for what it starts: several workers share the cores.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pytest
import torch

from undermargin import Run

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def state_folder(tmp_path_factory):
    """What is remembered about a user goes elsewhere."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def run():
    """A run by hand: scores, and the positions of its threshold samples."""

    def make(scores, threshold=(), **fields):
        is_threshold = np.isin(np.arange(len(scores)), threshold)
        return Run(scores=np.asarray(scores, dtype=float), is_threshold=is_threshold, **fields)

    return make


@pytest.fixture
def noisy_blobs(rng):
    """Three clouds of 60 points, every sixth with the next cloud's label: points, labels, who is mislabeled."""
    true = np.arange(180) % 3
    is_mislabeled = np.arange(180) // 3 % 6 == 0
    labels = np.where(is_mislabeled, (true + 1) % 3, true)
    points = np.repeat(np.eye(3)[true] * 4, 2, axis=1) + rng.normal(size=(180, 6))
    return points.astype(np.float32), labels, is_mislabeled
