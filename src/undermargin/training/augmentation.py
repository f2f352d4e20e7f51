"""Augmentation of whole batches on the training device."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.training.inputs import Batch

Augment = Callable[[Batch, torch.Generator], Batch]


@dataclass(frozen=True)
class Augmentation:
    """Random shifts by up to `pixels` with zero padding, and mirroring if `flips` (not for digits or letters)."""

    pixels: int
    flips: bool

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Augment the images (batch, height, width, channels), the first of the inputs; other inputs are unchanged."""
        images = batch[0]
        top, left = torch.randint(0, 2 * self.pixels + 1, (2, len(images), 1), generator=generator)
        is_flipped = torch.randint(0, 2, (len(images), 1), generator=generator).bool() & self.flips
        return (_cut(images, self.pixels, top, left, is_flipped), *batch[1:])


@dataclass(frozen=True)
class ScaledCrops:
    """For photos: crops of random area and aspect ratio, resized to `side` pixels, and flips (He et al. 2016).

    `area` is the smallest share of the image; the ratio of width to height is between `shape` and its inverse.
    """

    side: int
    area: float = 0.08
    shape: float = 3 / 4

    def __call__(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Augment the images (batch, height, width, channels), the first of the inputs; other inputs are unchanged."""
        images = batch[0]
        area, shape, across, down, mirror = torch.rand(5, len(images), generator=generator)
        area = self.area + (1 - self.area) * area
        ratio = torch.exp((2 * shape - 1) * -math.log(self.shape))
        width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
        sign = 1 - 2 * (mirror < 0.5).float()
        zero = torch.zeros_like(width)
        rows = [sign * width, zero, (2 * across - 1) * (1 - width), zero, height, (2 * down - 1) * (1 - height)]
        where = F.affine_grid(
            torch.stack(rows, 1).view(-1, 2, 3), [len(images), 1, self.side, self.side], align_corners=False
        )
        numbers = images.permute(0, 3, 1, 2).float()
        cut = F.grid_sample(numbers, where.to(images.device), padding_mode="reflection", align_corners=False)
        return (cut.round().to(images.dtype).permute(0, 2, 3, 1), *batch[1:])


def _cut(images: Tensor, pixels: int, top: Tensor, left: Tensor, is_flipped: Tensor) -> Tensor:
    """Crops of the padded images, mirrored where `is_flipped`; `top`, `left` and `is_flipped` are (batch, 1)."""
    batch, height, width, channels = images.shape
    padded = F.pad(images, (0, 0, *(pixels,) * 4))
    across = torch.arange(width)
    columns = left + torch.where(is_flipped, across.flip(0), across)  # (batch, width)
    rows = torch.arange(batch)[:, None] * padded.shape[1] + top + torch.arange(height)  # (batch, height)
    places = (rows[:, :, None] * padded.shape[2] + columns[:, None, :]).flatten()
    # a single index_select of whole pixels is several times faster than indexing by rows and columns
    return padded.view(-1, channels).index_select(0, places.to(images.device)).view(images.shape)
