"""The data of the demo: 1,797 real handwritten digits of 8x8 pixels that come with scikit-learn."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NUM_CLASSES = 10
NUM_TEST = 360


@dataclass(frozen=True)
class Digits:
    """Images (samples, 8, 8, 1) and labels (samples,), split into a training and a test part."""

    train_images: npt.NDArray[np.uint8]
    train_labels: npt.NDArray[np.int64]
    test_images: npt.NDArray[np.uint8]
    test_labels: npt.NDArray[np.int64]


def load_digits(*, seed: int = 0) -> Digits:
    """The digits, with a fifth of them held out for testing."""
    from sklearn.datasets import load_digits as load

    images, labels = load(return_X_y=True)
    images = (images * (255 / 16)).round().astype(np.uint8).reshape(-1, 8, 8, 1)
    labels = labels.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    test, train = order[:NUM_TEST], order[NUM_TEST:]
    return Digits(images[train], labels[train], images[test], labels[test])
