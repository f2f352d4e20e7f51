"""A small batch-normalised convolutional network for images of a few pixels."""

from torch import nn


def small_cnn(num_outputs: int, *, channels: int = 1, width: int = 16) -> nn.Module:
    """Three convolutions and a linear layer: enough for digits, too little to learn wrong labels by heart at once."""
    return nn.Sequential(
        *_block(channels, width),
        *_block(width, width),
        nn.MaxPool2d(2),
        *_block(width, 2 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, num_outputs),
    )


def _block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
