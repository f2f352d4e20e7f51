"""Augmentation in batches, on the device."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


def shift(images: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Move each image by up to `pixels` in both directions, zeros moving in: (batch, channels, height, width)."""
    batch, _, height, width = images.shape
    padded = F.pad(images, (pixels,) * 4)
    top, left = torch.randint(0, 2 * pixels + 1, (2, batch, 1, 1), generator=generator).to(images.device)
    rows = top + torch.arange(height, device=images.device)[:, None]
    columns = left + torch.arange(width, device=images.device)
    samples = torch.arange(batch, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[samples, rows, columns].permute(0, 3, 1, 2)
