"""From the bytes of images to the numbers a network was trained on."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


@dataclass(frozen=True)
class Scaling:
    """A square of `size` pixels with this mean and deviation taken out, both in bytes, a channel each."""

    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of_shares(cls, size: int, mean: tuple[float, ...], deviation: tuple[float, ...]) -> "Scaling":
        """The same, from a mean and a deviation of pixels between 0 and 1, as most libraries have them.

        >>> Scaling.of_shares(224, (0.5,), (0.25,))
        Scaling(size=224, mean=(127.5,), deviation=(63.75,))
        """
        return cls(size, tuple(255 * value for value in mean), tuple(255 * value for value in deviation))

    def __call__(self, images: npt.NDArray[np.uint8]) -> Tensor:
        """Bytes (batch, height, width, 1 or 3) -> float (batch, 3, size, size), channels last in memory."""
        pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float()
        if pixels.shape[2:] != (self.size, self.size):
            # without antialias, photos made smaller would show patterns that no network was trained on
            pixels = F.interpolate(pixels, (self.size, self.size), mode="bilinear", antialias=True)
        mean, deviation = (torch.tensor(values).view(1, -1, 1, 1) for values in (self.mean, self.deviation))
        scaled = (pixels.expand(-1, 3, -1, -1) - mean) / deviation
        return scaled.contiguous(memory_format=torch.channels_last)
