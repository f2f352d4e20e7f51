"""Image networks from timm, which loads safetensors, or pickles with `weights_only`."""

import difflib

from torch import nn

from undermargin.errors import ModelError
from undermargin.models.pretrained.libraries import library, one_line
from undermargin.models.pretrained.scaling import Scaling

EXTRA = "timm"


def scaling(name: str) -> Scaling:
    """The preprocessing of the weights with this name."""
    timm = library("timm", extra=EXTRA)
    tagged = timm.list_models(pretrained=True)  # over a thousand, as MODEL.WEIGHTS
    names = {known.partition(".")[0] for known in tagged}
    if name not in names.union(tagged):
        near = difflib.get_close_matches(name.partition(".")[0], sorted(names), 3, 0)
        raise ModelError(f"timm has no pretrained model {name!r}; the closest names are {', '.join(near)}")
    config = timm.get_pretrained_cfg(name)
    return Scaling.of_shares(config.input_size[-1], tuple(config.mean), tuple(config.std))


def network(name: str) -> nn.Module:
    """The network with pooling and without its classifier."""
    try:
        made: nn.Module = library("timm", extra=EXTRA).create_model(name, pretrained=True, num_classes=0)
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelError(f"the weights of timm:{name} cannot be loaded: {one_line(error)}") from None
    return made
