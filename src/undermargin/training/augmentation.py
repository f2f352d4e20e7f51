"""Augmentation of whole batches, on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


def shift(images: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Move each image by up to `pixels` in both directions, zeros moving in: (batch, height, width, channels)."""
    batch, height, width, _ = images.shape
    padded = F.pad(images, (0, 0, *(pixels,) * 4))
    top, left = torch.randint(0, 2 * pixels + 1, (2, batch, 1, 1), generator=generator).to(images.device)
    rows = top + torch.arange(height, device=images.device)[:, None]
    columns = left + torch.arange(width, device=images.device)
    return padded[torch.arange(batch, device=images.device)[:, None, None], rows, columns]


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image left to right, or not, by lot: (batch, height, width, channels)."""
    is_flipped = torch.randint(0, 2, (len(images), 1, 1, 1), generator=generator).bool().to(images.device)
    return torch.where(is_flipped, images.flip(2), images)


@dataclass(frozen=True)
class Augmentation:
    """Shifts by up to `pixels`, and mirroring where it makes sense (not for digits or letters)."""

    pixels: int
    flips: bool

    def __call__(self, batch: tuple[Tensor, ...], generator: torch.Generator) -> tuple[Tensor, ...]:
        """Augment the images, the first of the inputs; others stay."""
        images = shift(batch[0], self.pixels, generator)
        return (flip(images, generator) if self.flips else images, *batch[1:])
