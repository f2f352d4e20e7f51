"""Train again on part of a data set, with the number of iterations kept."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from undermargin.errors import InputError
from undermargin.training.network import Augment, Budget, Inputs, Training, build


def retrain(
    make_model: Callable[[int], nn.Module],
    inputs: Inputs,
    labels: Tensor,
    kept: npt.NDArray[np.int64],
    budget: Budget,
    *,
    num_classes: int,
    seed: int,
    augment: Augment | None = None,
    end_epoch: Callable[[], None] = lambda: None,
) -> nn.Module:
    """A network trained on the kept samples alone.

    The batch size shrinks with the data, so that it takes as many steps as with all of them (paper: removing
    a quarter turns a batch of 256 into one of 192).
    """
    if not len(kept):
        raise InputError(f"none of the {len(labels)} samples is kept: there is nothing to train on")
    budget = replace(budget, batch_size=max(2, round(budget.batch_size * len(kept) / len(labels))))
    rows = torch.from_numpy(kept)
    part = tuple(values[rows] for values in inputs)
    model = build(make_model, num_classes, seed=seed)
    training = Training(model, part, labels[rows], budget, seed=seed, augment=augment)
    for epoch in range(budget.epochs):
        training.run_epoch(epoch)
        end_epoch()
    return model
