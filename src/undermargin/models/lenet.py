"""LeNet for digits (as in the paper's first figure) and for small photos."""

from torch import nn

from undermargin.models.images import Sides, check_side


def lenet(num_outputs: int, *, channels: int = 1, side: int = 28) -> nn.Module:
    """The variant for MNIST: convolutions with 20 and 50 channels, 500 hidden units."""
    return _lenet((channels, 20, 50), (500, num_outputs), side)


def lenet5(num_outputs: int, *, channels: int = 1, side: int = 28) -> nn.Module:
    """LeNet-5: convolutions with 6 and 16 channels, 120 and 84 hidden units; three times as fast as `lenet`."""
    return _lenet((channels, 6, 16), (120, 84, num_outputs), side)


def lenet_cifar(num_outputs: int, *, channels: int = 3, side: int = 32) -> nn.Module:
    """The variant for CIFAR: `lenet5` with three channels and 32 pixels."""
    return lenet5(num_outputs, channels=channels, side=side)


def _lenet(channels: tuple[int, int, int], hidden: tuple[int, ...], side: int) -> nn.Module:
    check_side(side, 16)
    first, second, third = channels
    layers: list[nn.Module] = [Sides(side)]
    for inputs, outputs in ((first, second), (second, third)):
        layers += [nn.Conv2d(inputs, outputs, 5), nn.MaxPool2d(2), nn.ReLU()]  # pooling first is equivalent and faster
        side = (side - 4) // 2
    layers.append(nn.Flatten())
    width = third * side * side
    for numbers in hidden:
        layers += [nn.Linear(width, numbers), nn.ReLU()]
        width = numbers
    return nn.Sequential(*layers[:-1])
