import numpy as np
import pytest
import torch

from undermargin import Run


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
