"""The networks of the paper, by name: each is made from a number of outputs and of channels.

They take numbers (batch, channels, height, width); `images.Standardised` makes these of bytes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from torch import nn

from undermargin.models.lenet import lenet, lenet_cifar


class MakeNetwork(Protocol):
    """A row of NETWORKS."""

    def __call__(self, num_outputs: int, *, channels: int = ...) -> nn.Module:
        """A network with fresh weights."""


NETWORKS: Mapping[str, MakeNetwork] = MappingProxyType(
    {
        "lenet": lenet,
        "lenet-cifar": lenet_cifar,
    }
)
