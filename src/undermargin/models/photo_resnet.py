"""ResNet-18, -34 and -50 for photos, randomly initialized."""

from torch import Tensor, nn

WIDTHS = (64, 128, 256, 512)
DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}  # blocks per stage
BOTTLENECK = 4  # ratio of output channels to inner channels in a block of ResNet-50
SMALL = 64  # up to this side in pixels, the first layers keep the resolution


class PhotoBlock(nn.Module):
    """Convolutions with a shortcut, which is a 1 x 1 convolution where the shape changes."""

    def __init__(self, layers: list[nn.Module], inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(*layers)
        is_same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if is_same else nn.Sequential(*_convolution(inputs, outputs, 1, stride))
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        y: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return y


def photo_resnet(num_outputs: int, *, channels: int = 3, side: int = 224, depth: int = 50) -> nn.Module:
    """Four stages of blocks; for small images the first convolution is 3 x 3 and keeps the resolution."""
    stem = _convolution(channels, 64, 3, 1) if side <= SMALL else _convolution(channels, 64, 7, 2)
    layers = [*stem, nn.ReLU()]
    if side > SMALL:
        layers.append(nn.MaxPool2d(3, 2, padding=1))
    inputs = 64
    for stage, (width, num_blocks) in enumerate(zip(WIDTHS, DEPTHS[depth], strict=True)):
        for number in range(num_blocks):
            block = _block(inputs, width, 2 if stage and not number else 1, has_bottleneck=depth >= 50)
            layers.append(block)
            inputs = width * BOTTLENECK if depth >= 50 else width
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, num_outputs))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def _block(inputs: int, width: int, stride: int, *, has_bottleneck: bool) -> PhotoBlock:
    if has_bottleneck:
        layers = [
            *(*_convolution(inputs, width, 1, 1), nn.ReLU()),
            *(*_convolution(width, width, 3, stride), nn.ReLU()),
            *_convolution(width, width * BOTTLENECK, 1, 1),
        ]
        return PhotoBlock(layers, inputs, width * BOTTLENECK, stride)
    layers = [*_convolution(inputs, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3, 1)]
    return PhotoBlock(layers, inputs, width, stride)


def _convolution(inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(outputs)]
