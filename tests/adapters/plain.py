"""What every adapter is compared with: margins and their means by plain loops, and digits with some labels flipped."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import undermargin

needs_scan = pytest.mark.skipif(not hasattr(undermargin, "Scan"), reason="the examples end with Scan.of")

NUM_FLIPPED = 15


def flipped_digits(num_samples=300):
    """Pixels in 0..1, labels of which the first 15 are wrong, and a mask of these."""
    x, true = load_digits(return_X_y=True)
    x, true = x[:num_samples].astype(np.float32) / 16, true[:num_samples].astype(np.int64)
    is_flipped = np.arange(num_samples) < NUM_FLIPPED
    return x, np.where(is_flipped, (true + 3) % 10, true), is_flipped


def margin(logits, label):
    """Of one sample: a loop over the other classes."""
    return logits[label] - max(value for other, value in enumerate(logits) if other != label)


def mean_margins(epochs, labels):
    """Logits of every sample, epoch by epoch: mean over epochs of each sample's margin."""
    return np.array([np.mean([margin(logits[i], label) for logits in epochs]) for i, label in enumerate(labels)])
