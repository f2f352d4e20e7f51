"""Conversion of uint8 images to network inputs."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from undermargin.errors import InputError


def normalised(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """uint8 (batch, height, width, channels) -> floats around 0, (batch, channels, height, width), channels-last."""
    return images.permute(0, 3, 1, 2).to(dtype).sub(127.5).div(64)


class Normalised(nn.Module):
    """Wraps a network for float images (channels first) so that it accepts uint8 images (channels last).

    The floats are centered around 0. With `from_black` they range from 0 to 1, so that the zero padding of convolutions
    is black, like the background of small digits and letters.
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


class Spread(NamedTuple):
    """Mean and standard deviation of the pixels of a data set per channel, on a scale from 0 (black) to 1 (white)."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


PHOTOS = Spread((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # ImageNet's, used for all sets of photos
CIFAR = Spread((0.4914, 0.4824, 0.4467), (0.2471, 0.2435, 0.2616))  # CIFAR-10's; the authors use it for CIFAR-100 too
SPREADS: Mapping[str, Spread] = {
    "mnist": Spread((0.1307,), (0.3081,)),
    "cifar10": CIFAR,
    "cifar100": CIFAR,
    "tiny-imagenet": PHOTOS,
    "webvision": PHOTOS,
    "clothing1m": PHOTOS,
    "imagenet": PHOTOS,
}


class Standardised(nn.Module):
    """Wraps a network so that it accepts uint8 images, which are standardized to mean 0 and standard deviation 1."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, spread: Spread) -> None:
        super().__init__()
        self.network = network
        for name, values in spread._asdict().items():  # constants: moved with the network but not saved
            self.register_buffer(name, torch.tensor(values)[:, None, None] * 255, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """uint8 images (batch, height, width, channels) -> logits (batch, outputs)."""
        if images.shape[-1] != len(self.mean):
            raise InputError(f"images have {images.shape[-1]} channels, expected {len(self.mean)} as in the spread")
        numbers = images.permute(0, 3, 1, 2).to(self.mean.dtype).sub(self.mean).div(self.deviation)
        logits: Tensor = self.network(numbers)
        return logits


class Centre(nn.Module):
    """Center crop of uint8 images (channels last) that are larger than `side`; used for testing."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        """(batch, height, width, channels) -> (batch, side, side, channels)."""
        top, left = (max(0, (length - self.side) // 2) for length in images.shape[1:3])
        return images[:, top : top + self.side, left : left + self.side]


class Sides(nn.Module):
    """Checks that images have this side, because a later linear layer would fail with a less helpful error."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width), unchanged."""
        height, width = images.shape[2:]
        if (height, width) != (self.side, self.side):
            raise InputError(
                f"images have {height} x {width} pixels, but this network was built for {self.side} x {self.side}; "
                "build it for the size of the images (side=...)"
            )
        return images


def check_side(side: int, least: int) -> None:
    """Raise `InputError` if images are too small for a network."""
    if side < least:
        raise InputError(
            f"images have a side of {side} pixels, but this network needs at least {least}; choose another network"
        )
