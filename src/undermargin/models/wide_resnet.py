"""Wide residual networks for small images, with dropout and convolution biases as in the authors' code."""

from itertools import pairwise

from torch import Tensor, nn

DROPOUT = 0.3


class WideBlock(nn.Module):
    """Two pre-activated convolutions with a shortcut; the second convolution has the stride."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.Dropout(DROPOUT),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, stride, padding=1),
        )
        is_same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if is_same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        y: Tensor = self.residual(x) + self.shortcut(x)
        return y


def wide_resnet(
    num_outputs: int, *, channels: int = 3, side: int = 32, depth: int = 28, widening: int = 10
) -> nn.Module:
    """Three stages of (depth - 4) / 6 blocks each; the first convolution halves images larger than 32 pixels."""
    num_blocks = (depth - 4) // 6
    stages = [size * widening for size in (16, 32, 64)]
    widths = [16, *(width for width in stages for _ in range(num_blocks))]
    blocks = [WideBlock(a, b, 2 if b > a > 16 else 1) for a, b in pairwise(widths)]
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, 2 if side > 32 else 1, padding=1),
        *blocks,
        nn.BatchNorm2d(widths[-1], momentum=0.9),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], num_outputs),
    )
