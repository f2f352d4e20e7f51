"""Images as data sets have them, made ready for a network."""

import torch
from torch import Tensor, nn


def normalised(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes (batch, height, width, channels) to numbers around 0, (batch, channels, height, width), channels last."""
    return images.permute(0, 3, 1, 2).to(dtype).sub(127.5).div(64)


class Normalised(nn.Module):
    """A network for images as numbers, channels first, that takes them as bytes, channels last.

    Numbers are around 0, or, `from_black`, from 0 to 1: then what convolutions pad with is black, like the paper that
    small digits and letters are written on.
    """

    def __init__(self, network: nn.Module, *, from_black: bool = False) -> None:
        super().__init__()
        self.network = network
        self.from_black = from_black

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        numbers = images.permute(0, 3, 1, 2) / 255 if self.from_black else normalised(images)
        logits: Tensor = self.network(numbers)
        return logits
