"""VGG without batch normalization, reduced for small images as in the authors' code."""

from torch import nn

from undermargin.models.images import Sides, check_side

WIDTHS = (64, 128, 256, 512, 512)
DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # convolutions per stage
HIDDEN = 512


def vgg(num_outputs: int, *, channels: int = 3, side: int = 32, depth: int = 16) -> nn.Module:
    """Five stages of convolutions, each followed by 2 x 2 pooling, and three linear layers."""
    check_side(side, 32)
    layers: list[nn.Module] = [Sides(side)]
    for width, num_convolutions in zip(WIDTHS, DEPTHS[depth], strict=True):
        for _ in range(num_convolutions):
            convolution = nn.Conv2d(channels, width, 3, padding=1)
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            layers += [convolution, nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(WIDTHS[-1] * (side // 32) ** 2, HIDDEN),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, num_outputs),
    )
