"""Three groups that a small network tells apart at once, with some labels wrong."""

import numpy as np
from torch import nn

from undermargin import noise


def small(num_outputs):
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, num_outputs))


def make_blobs(rng, rate):
    """Points, labels of which a share is wrong, true labels."""
    true = np.repeat([0, 1, 2], 60)
    x = rng.normal(size=(180, 4)).astype(np.float32) + 4 * np.eye(3, 4, dtype=np.float32)[true]
    return x, noise.uniform(true, rate, 3, seed=1), true
