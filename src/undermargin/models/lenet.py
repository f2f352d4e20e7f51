"""LeNet, for digits (the paper's first figure) and for small photos."""

from torch import nn

from undermargin.models.images import Sides


def lenet(num_outputs: int, *, channels: int = 1) -> nn.Module:
    """For 28 x 28 pixels, as MNIST has them: convolutions of 20 and 50 channels, 500 hidden numbers."""
    return nn.Sequential(
        Sides(28, 28),
        nn.Conv2d(channels, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(50 * 4 * 4, 500),
        nn.ReLU(),
        nn.Linear(500, num_outputs),
    )


def lenet_cifar(num_outputs: int, *, channels: int = 3) -> nn.Module:
    """For 32 x 32 pixels: convolutions of 6 and 16 channels, 120 and 84 hidden numbers."""
    return nn.Sequential(
        Sides(32, 32),
        nn.Conv2d(channels, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, num_outputs),
    )
