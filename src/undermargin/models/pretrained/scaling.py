"""Preprocessing of uint8 images for pretrained networks."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


@dataclass(frozen=True)
class Scaling:
    """Resizes images to a square of `size` pixels and standardizes them; mean and deviation per channel, 0 to 255."""

    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of_shares(cls, size: int, mean: tuple[float, ...], deviation: tuple[float, ...]) -> "Scaling":
        """The same from a mean and standard deviation on the scale from 0 to 1, which most libraries use.

        >>> Scaling.of_shares(224, (0.5,), (0.25,))
        Scaling(size=224, mean=(127.5,), deviation=(63.75,))
        """
        return cls(size, tuple(255 * value for value in mean), tuple(255 * value for value in deviation))

    def __call__(self, images: npt.NDArray[np.uint8]) -> Tensor:
        """uint8 (batch, height, width, 1 or 3) -> float (batch, 3, size, size), channels-last in memory."""
        pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float()
        if pixels.shape[2:] != (self.size, self.size):
            # without antialiasing, downscaled photos would contain artifacts that the network was not trained on
            pixels = F.interpolate(pixels, (self.size, self.size), mode="bilinear", antialias=True)
        mean, deviation = (torch.tensor(values).view(1, -1, 1, 1) for values in (self.mean, self.deviation))
        scaled = (pixels.expand(-1, 3, -1, -1) - mean) / deviation
        return scaled.contiguous(memory_format=torch.channels_last)
