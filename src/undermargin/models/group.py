"""Several networks as one module, and the inputs of a network's last layer as features."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from undermargin.errors import ModelError


class Group(nn.Module):
    """Networks that process the same inputs; their outputs are stacked: (batch, networks, classes)."""

    def __init__(self, make_model: Callable[[int], nn.Module], num_networks: int, num_outputs: int) -> None:
        super().__init__()
        # each network draws its own weights; the first draws the same as it would alone
        self.members = nn.ModuleList(make_model(num_outputs) for _ in range(num_networks))

    def forward(self, *inputs: Tensor) -> Tensor:
        """The outputs of every network: (batch, networks, classes)."""
        return torch.stack([member(*inputs) for member in self.members], 1)


def first(outputs: Tensor) -> Tensor:
    """The outputs of the first network, which is the classifier: (batch, classes)."""
    return outputs[:, 0] if outputs.ndim == 3 else outputs


def features(network: nn.Module, run: Callable[[], object]) -> Tensor:
    """The inputs of the last linear layer of the (first) network while `run` runs it: (samples, features)."""
    member = network.members[0] if isinstance(network, Group) else network
    linear = [layer for layer in member.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise ModelError(
            "the network has no linear layer, so its features are unknown; use a network that ends with nn.Linear"
        )
    shown: list[Tensor] = []
    hook = linear[-1].register_forward_pre_hook(lambda _, inputs: shown.append(inputs[0].detach().float().flatten(1)))
    try:
        run()
    finally:
        hook.remove()
    return torch.cat(shown)
