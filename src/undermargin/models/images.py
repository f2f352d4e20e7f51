"""Images as data sets have them, made ready for a network."""

import torch
from torch import Tensor, nn


def normalised(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes (batch, height, width, channels) to numbers around 0, (batch, channels, height, width), channels last."""
    return images.permute(0, 3, 1, 2).to(dtype).sub(127.5).div(64)


class Normalised(nn.Module):
    """A network for images as numbers, channels first, that takes them as bytes, channels last."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        logits: Tensor = self.network(normalised(images))
        return logits
