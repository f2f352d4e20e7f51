"""Train again on part of a data set, with the number of iterations kept."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from undermargin.errors import InputError
from undermargin.training.network import Budget, build, train


def retrain(
    make_model: Callable[[int], nn.Module],
    images: Tensor,
    labels: Tensor,
    kept: npt.NDArray[np.int64],
    budget: Budget,
    *,
    num_classes: int,
    seed: int,
    augment: Callable[[Tensor, torch.Generator], Tensor],
    end_epoch: Callable[[int], None] = lambda epoch: None,  # noqa: ARG005
) -> nn.Module:
    """A network trained on the kept samples alone.

    The batch size shrinks with the data, so that it takes as many steps as with all of them (paper: removing
    a quarter turns a batch of 256 into one of 192).
    """
    if not len(kept):
        raise InputError(f"none of the {len(images)} samples is kept: there is nothing to train on")
    batch_size = max(2, round(budget.batch_size * len(kept) / len(images)))
    model = build(make_model, num_classes, seed=seed)
    rows = torch.from_numpy(kept)
    shrunk = replace(budget, batch_size=batch_size)
    train(model, images[rows], labels[rows], shrunk, seed=seed, augment=augment, end_epoch=end_epoch)
    return model
