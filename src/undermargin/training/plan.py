"""The default training plan, chosen from the kind and size of a data set.

AUM works as long as the network has not memorized the wrong labels, so small data sets get small networks, dropout or
augmentation, and few epochs.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import torch
from torch import nn

from undermargin.errors import InputError, ModelError
from undermargin.models.images import Normalised
from undermargin.models.mlp import TableNet, head
from undermargin.models.resnet import ResNet
from undermargin.models.small import small_cnn
from undermargin.procedure import NUM_FOLDS
from undermargin.sources.pixels import Pixels
from undermargin.sources.samples import Columns, Samples
from undermargin.training.augmentation import Augmentation
from undermargin.training.boosting import MAX_CATEGORIES, BoostingPlan
from undermargin.training.engine import Budget, Plan
from undermargin.training.features import Vectors, latent, standardised
from undermargin.training.network import NetworkPlan, accelerator, build

MakeModel = Callable[[int], nn.Module]
FEATURE_EPOCHS = 8  # limit for small networks on pretrained features, which memorize these large vectors quickly
SMALL, SMALL_FOLDS = 1500, 5  # samples; folds of fewer
TINY = 16  # pixels: images with a shorter side are too small for strided convolutions


def plan(samples: Samples, *, model: str | MakeModel | None = None, precision: str = "no") -> Plan:
    """The training plan for these samples.

    `model` is the name of a row of MODELS or of a pretrained model, or a function from the number of outputs to a
    network.
    """
    models = MODELS[samples.kind]
    name = DEFAULTS[samples.kind] if model is None or callable(model) else model
    chosen = models[name](samples) if name in models else _pretrained(samples, name, precision)
    if callable(model) and isinstance(chosen, NetworkPlan):
        # a network of the user's own; it gets images as floats around 0, channels first
        make = partial(_normalised, model) if samples.kind == "images" else model
        chosen = replace(chosen, model=_described(model), make_model=make)
    return replace(chosen, precision=precision) if isinstance(chosen, NetworkPlan) else chosen


def _described(make_model: MakeModel) -> str:
    """A name for the user's own network that includes a hash of its layers."""
    layers = repr(build(make_model, 2, seed=0))
    return f"the user's own ({hashlib.sha256(layers.encode()).hexdigest()[:8]})"


def check_model(model: str | MakeModel | None) -> int | None:
    """Raise `ModelError` for an unknown model before data are loaded; returns the image size of a pretrained model."""
    if not isinstance(model, str) or any(model in models for models in MODELS.values()):
        return None
    from undermargin.models import pretrained

    try:
        pretrained.check(model)
    except ModelError as error:
        own = ", ".join(dict.fromkeys(name for models in MODELS.values() for name in models))
        raise ModelError(f"{error}; built-in models: {own}") from None
    return pretrained.image_size(model) if pretrained.takes_images(model) else None


def _pretrained(samples: Samples, name: str, precision: str) -> NetworkPlan:
    """A small network on the features of a pretrained one, or the pretrained network itself if it is fine-tuned."""
    own = ", ".join(MODELS[samples.kind])
    if samples.kind not in ("images", "text"):
        raise InputError(f"unknown model {name!r} for {samples.kind}; choose from {own}")
    from undermargin.models import pretrained

    try:
        pretrained.check(name, samples.kind)
    except ModelError as error:
        raise ModelError(f"{error}; or choose from {own}") from None
    if pretrained.is_tuned(name):
        inputs, make = pretrained.transformer(name, samples.inputs)
        return NetworkPlan(name, make, inputs, Budget(**pretrained.TUNING))
    vectors = standardised(pretrained.features(name, samples.inputs, device=str(accelerator(precision).device)))
    chosen = _vectors(vectors, f"{name} and one hidden layer")
    return replace(chosen, budget=replace(chosen.budget, epochs=min(chosen.budget.epochs, FEATURE_EPOCHS)))


def _normalised(make_model: MakeModel, num_outputs: int, *, from_black: bool = False) -> nn.Module:
    return Normalised(make_model(num_outputs), from_black=from_black)


def _images(samples: Samples, *, blocks: int) -> NetworkPlan:
    _, height, width, channels = samples.inputs.shape
    side = min(height, width)
    # grayscale images are mostly digits and letters, which must not be mirrored; color images are photos
    augment = Augmentation(pixels=max(1, side // 8), flips=channels == 3)
    if side < TINY and blocks == 1:
        make: MakeModel = partial(_normalised, partial(small_cnn, channels=channels), from_black=True)
        name = "a small convolutional network"
        budget = Budget(_between(90_000 / len(samples), 10, 60), 32, weight_decay=1e-3)
    else:
        # the first convolution reduces the image to about 16 pixels: several times as fast on a CPU, with a ranking as
        # good as that of the paper's network, which keeps 32
        stem_stride = min(max(round(side / 16), 1), 4)
        make = partial(ResNet, channels=channels, blocks=blocks, stem_stride=stem_stride)
        name = f"ResNet-{6 * blocks + 2}"
        budget = Budget(_between(500_000 / len(samples), 12, 60), 64)
    pixels = samples.inputs if isinstance(samples.inputs, Pixels) else torch.from_numpy(samples.inputs)
    return NetworkPlan(name, make, (pixels,), budget, augment)


def _text(samples: Samples) -> NetworkPlan:
    return _vectors(latent(samples.inputs), "latent semantic analysis and one hidden layer")


def _embeddings(samples: Samples) -> NetworkPlan:
    return _vectors(standardised(samples.inputs), "one hidden layer")


def _linear(samples: Samples) -> NetworkPlan:
    vectors = torch.from_numpy(standardised(samples.inputs))
    make = partial(nn.Linear, vectors.shape[1])
    return NetworkPlan("a linear classifier", make, (vectors,), _budget(len(samples)))


def _table(samples: Samples) -> NetworkPlan:
    columns: Columns = samples.inputs
    missing = np.isnan(columns.numbers)
    shown = missing.any(0)  # a missing value can be informative
    numbers = standardised(columns.numbers)
    numbers[missing] = 0
    inputs = (
        torch.from_numpy(np.concatenate([numbers, missing[:, shown].astype(np.float32)], 1)),
        torch.from_numpy(columns.codes),
    )
    model = partial(TableNet, inputs[0].shape[1], columns.num_codes)
    name = "embedded categories and one hidden layer"
    return NetworkPlan(name, model, inputs, _budget(len(samples)))


def _boosting(samples: Samples) -> BoostingPlan:
    if samples.kind == "embeddings":
        matrix, is_category = samples.inputs, np.zeros(samples.inputs.shape[1], bool)
    else:
        columns: Columns = samples.inputs
        codes = np.where(columns.codes > 0, columns.codes - 1, np.nan).astype(np.float32)
        matrix = np.concatenate([columns.numbers, codes], 1)
        few = [size <= MAX_CATEGORIES for size in columns.num_codes]
        is_category = np.array([False] * columns.numbers.shape[1] + few)
    return BoostingPlan(matrix, is_category, Budget(ROUNDS, len(samples), learning_rate=0.1))


def _vectors(vectors: Vectors, name: str) -> NetworkPlan:
    inputs = torch.from_numpy(vectors)
    return NetworkPlan(name, partial(head, inputs.shape[1]), (inputs,), _budget(len(vectors)))


def _budget(num_samples: int) -> Budget:
    batch_size = 64 if num_samples <= 50_000 else 256
    return Budget(_between(100_000 / num_samples, 5, 40), batch_size, optimizer="adamw", learning_rate=3e-3)


def num_folds(samples: Samples) -> int:
    """How many folds to train: two, or five for small data, of which two would hold out too few samples."""
    return SMALL_FOLDS if is_small(samples) else NUM_FOLDS


def is_small(samples: Samples) -> bool:
    """Whether training takes about a second, so that more of it costs nothing: no early stopping, more folds."""
    return samples.kind != "images" and len(samples) < SMALL


def _between(value: float, low: int, high: int) -> int:
    return int(min(max(round(value), low), high))


ROUNDS = 50
MODELS: Mapping[str, Mapping[str, Callable[[Samples], NetworkPlan | BoostingPlan]]] = MappingProxyType(
    {
        "images": {"resnet8": partial(_images, blocks=1), "resnet20": partial(_images, blocks=3)},
        "text": {"latent": _text},
        "table": {"network": _table, "boosting": _boosting},
        "embeddings": {"network": _embeddings, "linear": _linear, "boosting": _boosting},
    }
)
DEFAULTS = {kind: next(iter(models)) for kind, models in MODELS.items()}
