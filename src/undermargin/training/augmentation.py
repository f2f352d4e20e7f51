"""Augmentation of whole batches, on the device."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

Images = tuple[Tensor, ...]


def shift(images: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Move each image by up to `pixels` in both directions, zeros moving in: (batch, channels, height, width)."""
    batch, channels, height, width = images.shape
    padded = F.pad(images, (pixels,) * 4)
    top, left = torch.randint(0, 2 * pixels + 1, (2, batch, 1, 1), generator=generator).to(images.device)
    rows = top + torch.arange(height, device=images.device)[:, None]
    columns = left + torch.arange(width, device=images.device)
    places = (rows * padded.shape[3] + columns).view(batch, 1, -1).expand(-1, channels, -1)
    return padded.flatten(2).gather(2, places).view(batch, channels, height, width)


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image left to right, or not, by lot."""
    is_flipped = torch.randint(0, 2, (len(images), 1, 1, 1), generator=generator).bool().to(images.device)
    return torch.where(is_flipped, images.flip(3), images)


def augmentation(*, pixels: int, flips: bool) -> Callable[[Images, torch.Generator], Images]:
    """Shifts by up to `pixels`, and mirroring where it makes sense (not for digits or letters)."""

    def augment(batch: Images, generator: torch.Generator) -> Images:
        images = shift(batch[0], pixels, generator)
        return (flip(images, generator) if flips else images, *batch[1:])

    return augment
