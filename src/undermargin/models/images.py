"""Images as data sets have them, made ready for a network."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from undermargin.errors import InputError


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


class Spread(NamedTuple):
    """Mean and deviation of a data set's pixels, black 0 and white 1, one number a channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


PHOTOS = Spread((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # ImageNet's, used for every set of photos
CIFAR = Spread((0.4914, 0.4824, 0.4467), (0.2471, 0.2435, 0.2616))  # CIFAR-10's, which the authors use for both
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
    """A network for images as numbers, channels first, that takes bytes and brings them to mean 0 and deviation 1."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, spread: Spread) -> None:
        super().__init__()
        self.network = network
        for name, values in spread._asdict().items():  # constants: they move with the network, but are not saved
            self.register_buffer(name, torch.tensor(values)[:, None, None] * 255, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, outputs) of bytes (batch, height, width, channels)."""
        if images.shape[-1] != len(self.mean):
            raise InputError(f"images have {images.shape[-1]} channels, the constants are for {len(self.mean)}")
        numbers = images.permute(0, 3, 1, 2).to(self.mean.dtype).sub(self.mean).div(self.deviation)
        logits: Tensor = self.network(numbers)
        return logits


class Centre(nn.Module):
    """The middle of images as bytes, channels last, where they are larger than this side: what is tested on."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        """(batch, height, width, channels) -> (batch, side, side, channels)."""
        top, left = (max(0, (length - self.side) // 2) for length in images.shape[1:3])
        return images[:, top : top + self.side, left : left + self.side]


class Sides(nn.Module):
    """Passes on images with this side; others are an error, before a linear layer is surprised by them."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width), unchanged."""
        height, width = images.shape[2:]
        if (height, width) != (self.side, self.side):
            raise InputError(
                f"images have {height} x {width} pixels, this network was made for {self.side} x {self.side}; "
                "make it with their side"
            )
        return images


def check_side(side: int, least: int) -> None:
    """Raise for images that a network would shrink to nothing."""
    if side < least:
        raise InputError(f"images have {side} pixels a side, this network needs at least {least}; choose another")
