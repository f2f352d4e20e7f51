"""Classifiers of torchvision without their last layer."""

from typing import Any

from torch import nn

from undermargin.errors import ModelError
from undermargin.models.pretrained.libraries import library, one_line
from undermargin.models.pretrained.scaling import Scaling

EXTRA = "torchvision"
UNFIT = (
    *("googlenet", "inception_v3"),  # scaled a second time by the network itself, where there are weights
    *("squeezenet1_0", "squeezenet1_1"),  # no linear layer at the end
)


def scaling(name: str) -> Scaling:
    """As the best weights of this name were trained."""
    preset = _weights(name).transforms()
    return Scaling.of_shares(preset.crop_size[0], tuple(preset.mean), tuple(preset.std))


def network(name: str) -> nn.Module:
    """What the last linear layer is given."""
    weights = _weights(name)
    made: nn.Module = library("torchvision.models", extra=EXTRA).get_model(name, weights=None)
    try:
        # not `get_model(weights=...)`, which unpickles whatever the download holds
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
        raise ModelError(f"torchvision has no classifier {name!r}; it has {', '.join(names)}")
    return models.get_model_weights(name).DEFAULT
