"""The processes (ranks) of a distributed job, as far as a tracker needs them."""

import torch
import torch.distributed as dist
from torch import Tensor

from undermargin.errors import InputError


def num_ranks() -> int:
    """Number of processes of this job; 1 if torch.distributed is not in use."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if num_ranks() > 1 else 0


def wait() -> None:
    """Block until all ranks have called this."""
    if num_ranks() > 1:
        dist.barrier()


def sum_over_ranks(tensor: Tensor) -> None:
    """Replace the tensor by its sum over all ranks, on all ranks."""
    dist.all_reduce(tensor, dist.ReduceOp.SUM)


def max_over_ranks(tensor: Tensor) -> None:
    """Replace the tensor by its maximum over all ranks, on all ranks."""
    dist.all_reduce(tensor, dist.ReduceOp.MAX)


def device_of_ranks() -> torch.device:
    """The device on which tensors can be exchanged."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def agree(num_outputs: int, num_recorded: int) -> int:
    """Number of outputs that any rank has observed, 0 if none has. A collective.

    An error if the ranks differ in `num_recorded`, the number of samples with full logits (-1: no trajectories):
    they would wait for each other forever.
    """
    agreed = torch.tensor([num_outputs, num_recorded, -num_recorded], device=device_of_ranks())
    max_over_ranks(agreed)
    outputs, most, minus_fewest = agreed.tolist()
    if most != -minus_fewest:
        raise InputError("the ranks differ in what they record; give every rank the same trajectories=")
    return int(outputs)
