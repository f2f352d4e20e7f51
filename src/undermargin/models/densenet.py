"""DenseNet-BC for small images, with growth rate 12."""

import torch
from torch import Tensor, nn

from undermargin.models.images import check_side

GROWTH = 12


class Layer(nn.Module):
    """A bottleneck and a convolution whose output channels are appended to the input channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False),
            nn.BatchNorm2d(4 * GROWTH),
            nn.ReLU(),
            nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, inputs + GROWTH, height, width)."""
        return torch.cat([x, self.new(x)], 1)


def densenet(
    num_outputs: int, *, channels: int = 3, side: int = 32, depth: int = 100, is_halved: bool = False
) -> nn.Module:
    """Three blocks of (depth - 4) / 6 layers each.

    The first convolution halves images larger than 32 pixels; with `is_halved`, also smaller ones.
    """
    stride = 2 if side > 32 or is_halved else 1
    check_side(side, 4)
    width = 2 * GROWTH
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)]
    for block in range(3):
        if block:
            layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
        for _ in range((depth - 4) // 6):
            layers.append(Layer(width))
            width += GROWTH
    output = nn.Linear(width, num_outputs)
    network = nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), output)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    nn.init.zeros_(output.bias)
    return network
