"""Classifiers from torchvision without their last layer."""

from typing import Any

from torch import nn

from undermargin.errors import ModelError
from undermargin.models.pretrained.libraries import library, one_line
from undermargin.models.pretrained.scaling import Scaling

EXTRA = "torchvision"
UNFIT = (
    *("googlenet", "inception_v3"),  # with pretrained weights, the network scales its inputs a second time
    *("squeezenet1_0", "squeezenet1_1"),  # no final linear layer
)


def scaling(name: str) -> Scaling:
    """The preprocessing of the best weights with this name."""
    preset = _weights(name).transforms()
    return Scaling.of_shares(preset.crop_size[0], tuple(preset.mean), tuple(preset.std))


def network(name: str) -> nn.Module:
    """The network up to the inputs of its last linear layer."""
    weights = _weights(name)
    made: nn.Module = library("torchvision.models", extra=EXTRA).get_model(name, weights=None)
    try:
        # `get_model(weights=...)` would unpickle arbitrary objects
        made.load_state_dict(weights.get_state_dict(progress=True, check_hash=True, weights_only=True))
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelError(f"the weights of torchvision:{name} cannot be loaded: {one_line(error)}") from None
    layers = [path for path, layer in made.named_modules() if isinstance(layer, nn.Linear)]
    parent, _, last = layers[-1].rpartition(".")
    setattr(made.get_submodule(parent), last, nn.Identity())
    return made


def _weights(name: str) -> Any:
    models = library("torchvision.models", extra=EXTRA)
    names = [known for known in models.list_models(module=models) if known not in UNFIT]
    if name not in names:
        raise ModelError(f"torchvision has no classifier {name!r}; choose from {', '.join(names)}")
    return models.get_model_weights(name).DEFAULT
