"""Augmentation of whole batches, on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


@dataclass(frozen=True)
class Augmentation:
    """Shifts by up to `pixels`, zeros moving in; and mirroring where it makes sense (not for digits or letters)."""

    pixels: int
    flips: bool

    def __call__(self, batch: tuple[Tensor, ...], generator: torch.Generator) -> tuple[Tensor, ...]:
        """Augment the images (batch, height, width, channels), the first of the inputs; others stay."""
        images = batch[0]
        top, left = torch.randint(0, 2 * self.pixels + 1, (2, len(images), 1), generator=generator)
        is_flipped = torch.randint(0, 2, (len(images), 1), generator=generator).bool() & self.flips
        return (_cut(images, self.pixels, top, left, is_flipped), *batch[1:])


def _cut(images: Tensor, pixels: int, top: Tensor, left: Tensor, is_flipped: Tensor) -> Tensor:
    """Each image's cutting out of its padded self, read backwards where it is flipped: all three (batch, 1)."""
    batch, height, width, channels = images.shape
    padded = F.pad(images, (0, 0, *(pixels,) * 4))
    across = torch.arange(width)
    columns = left + torch.where(is_flipped, across.flip(0), across)  # (batch, width)
    rows = torch.arange(batch)[:, None] * padded.shape[1] + top + torch.arange(height)  # (batch, height)
    places = (rows[:, :, None] * padded.shape[2] + columns[:, None, :]).flatten()
    # one selection of whole pixels is several times faster than indexing by rows and columns
    return padded.view(-1, channels).index_select(0, places.to(images.device)).view(images.shape)
