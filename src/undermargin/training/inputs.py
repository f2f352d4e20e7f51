"""Inputs of a network: kept on the device if they fit, otherwise transferred batch by batch."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from undermargin.sources.pixels import Pixels

Input = Tensor | Pixels  # one row per sample; pixels on disk are read batch by batch
Inputs = tuple[Input, ...]  # the arguments of a model
Batch = tuple[Tensor, ...]  # rows of each input, on the device

DEVICE_SHARE = 0.25  # largest share of the device's free memory that an input may take
BATCHES_AHEAD = 2  # batches read from disk ahead of the training
TAKEN_TOGETHER = 1024  # samples per piece, fewer if they are large
TAKEN_NUMBERS = 1 << 24


class PlacedInputs:
    """Inputs with access to batches on a device."""

    def __init__(self, inputs: Inputs, device: torch.device) -> None:
        self.device = device
        self.inputs = tuple(_placed(values, device) for values in inputs)

    def take(self, indices: Tensor) -> Batch:
        """The samples at these indices, on the device."""
        return tuple(
            values.index_select(0, indices.to(values.device)).to(self.device)
            if isinstance(values, Tensor)
            else torch.from_numpy(values[indices.tolist()]).to(self.device)
            for values in self.inputs
        )

    def batches(self, parts: Sequence[Tensor]) -> Iterator[tuple[Tensor, Batch]]:
        """Indices and samples of one batch after the other; inputs on disk are read ahead in a thread."""
        if all(isinstance(values, Tensor) for values in self.inputs):
            yield from ((indices.to(self.device), self.take(indices)) for indices in parts)
            return
        with ThreadPoolExecutor(1) as thread:
            waiting = [thread.submit(self.take, indices) for indices in parts[:BATCHES_AHEAD]]
            for number, indices in enumerate(parts):
                if number + BATCHES_AHEAD < len(parts):
                    waiting.append(thread.submit(self.take, parts[number + BATCHES_AHEAD]))
                yield indices.to(self.device), waiting.pop(0).result()

    def pieces(self, rows: Tensor) -> Iterator[Batch]:
        """These rows in order, in pieces of limited size."""
        numbers = sum(math.prod(values.shape[1:]) for values in self.inputs)
        together = max(1, min(TAKEN_TOGETHER, TAKEN_NUMBERS // max(numbers, 1)))
        return (self.take(piece) for piece in torch.split(rows, together))


def _placed(values: Input, device: torch.device) -> Input:
    """The input on the device if it fits, otherwise in pinned memory or on disk."""
    if not isinstance(values, Tensor):
        return values
    if device.type == "cuda" and values.nbytes > DEVICE_SHARE * torch.cuda.mem_get_info(device)[0]:
        return values.pin_memory()
    return values.to(device)
