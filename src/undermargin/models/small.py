"""Small convolutional networks with batch normalization, for very small images."""

from torch import nn


def small_cnn(num_outputs: int, *, channels: int = 1, width: int = 32, depth: int = 1) -> nn.Module:
    """Two stages of `depth` convolutions and a linear layer.

    With one convolution per stage it is large enough to learn digits and too small to memorize wrong labels quickly.
    """
    return nn.Sequential(
        *_stage(channels, width, depth),
        nn.MaxPool2d(2),
        *_stage(width, 2 * width, depth),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, num_outputs),
    )


def small(num_outputs: int, *, channels: int = 1, side: int = 8, width: int = 32) -> nn.Module:  # noqa: ARG001
    """A small convolutional network for images of any side."""
    return small_cnn(num_outputs, channels=channels, width=width)


def _stage(inputs: int, outputs: int, depth: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for incoming in [inputs, *[outputs] * (depth - 1)]:
        convolution = nn.Conv2d(incoming, outputs, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
    return layers
