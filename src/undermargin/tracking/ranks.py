"""The processes of a distributed job, as far as a tracker needs to know them."""

import torch
import torch.distributed as dist
from torch import Tensor


def num_ranks() -> int:
    """How many processes train together; 1 when torch.distributed is not in use."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if num_ranks() > 1 else 0


def wait() -> None:
    """Go on when all of them have come here."""
    if num_ranks() > 1:
        dist.barrier()


def sum_over_ranks(tensor: Tensor) -> None:
    """Replace the tensor by its sum over all ranks, on all ranks."""
    dist.all_reduce(tensor, dist.ReduceOp.SUM)


def max_over_ranks(tensor: Tensor) -> None:
    """Replace the tensor by its maximum over all ranks, on all ranks."""
    dist.all_reduce(tensor, dist.ReduceOp.MAX)


def device_of_ranks() -> torch.device:
    """Where tensors must lie to be exchanged."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
