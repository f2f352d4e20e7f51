"""Residual networks for small images, of the family the paper uses: 6n + 2 layers, widths 16, 32, 64."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it


class Block(nn.Module):
    """Two convolutions around a shortcut that has no parameters: averaged where it shrinks, zeros where it widens."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.stride = stride
        self.widening = outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        shortcut = F.avg_pool2d(x, self.stride, ceil_mode=True) if self.stride > 1 else x  # odd sides too
        if self.widening:
            shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.widening))
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + shortcut)


class SmallResNet(nn.Module):
    """Three stages of `blocks` blocks each, for numbers (batch, channels, height, width)."""

    def __init__(self, num_outputs: int, *, channels: int = 3, blocks: int = 1, stem_stride: int = 1) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, stem_stride, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        widths = [16, *[16] * blocks, *[32] * blocks, *[64] * blocks]
        self.blocks = nn.Sequential(*(Block(a, b, 2 if b > a else 1) for a, b in pairwise(widths)))
        self.output = nn.Linear(64, num_outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        x = F.relu(self.stem_norm(self.stem(images)))
        logits: Tensor = self.output(self.blocks(x).mean((2, 3)))
        return logits


def small_resnet(
    num_outputs: int, *, channels: int = 3, side: int = 32, depth: int = 32, is_halved: bool = False
) -> nn.Module:
    """ResNet-`depth` of the paper; sides above 32 pixels (Tiny ImageNet) are halved by the first convolution.

    `is_halved` halves small sides, too, which makes it three times as fast on a CPU.
    """
    stem_stride = 2 if side > 32 or is_halved else 1
    return SmallResNet(num_outputs, channels=channels, blocks=(depth - 2) // 6, stem_stride=stem_stride)


def fast_resnet(num_outputs: int, *, channels: int = 3, side: int = 32, depth: int = 8) -> nn.Module:
    """ResNet-`depth` whose first convolution leaves about 16 pixels a side.

    It is several times as fast on a CPU as the paper's, which keeps 32, and ranks samples as well.
    """
    stem_stride = min(max(round(side / 16), 1), 4)
    return SmallResNet(num_outputs, channels=channels, blocks=(depth - 2) // 6, stem_stride=stem_stride)
