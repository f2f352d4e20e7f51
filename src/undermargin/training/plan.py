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

from undermargin.models import names
from undermargin.models.images import Normalised
from undermargin.models.mlp import TableNet, head
from undermargin.models.small import small_cnn
from undermargin.models.table import MakeNetwork
from undermargin.procedure import NUM_FOLDS
from undermargin.sources.pixels import Pixels
from undermargin.sources.samples import Columns, Kind, Samples
from undermargin.training.augmentation import Augmentation
from undermargin.training.boosting import MAX_CATEGORIES, BoostingPlan
from undermargin.training.engine import Budget, Plan
from undermargin.training.features import Vectors, latent, standardised
from undermargin.training.network import NetworkPlan, accelerator, build

MakeModel = Callable[[int], nn.Module]
FEATURE_EPOCHS = 8  # limit for small networks on pretrained features, which memorize these large vectors quickly
SMALL, SMALL_FOLDS = 1500, 5  # samples; folds of fewer
TINY = 16  # pixels: images with a shorter side are too small for strided convolutions
# networks that scans describe in other words than their names; version 0.1 knew them as resnet8 and resnet20
DESCRIBED = {"resnet8-fast": "ResNet-8", "resnet20-fast": "ResNet-20"}


def plan(samples: Samples, *, model: str | MakeModel | None = None, precision: str = "no") -> Plan:
    """The training plan for these samples.

    `model` is the name of a row of MODELS, or a function from the number of outputs to a network. The default is the
    first row for this kind of data.
    """
    name = names.default(samples.kind) if model is None or callable(model) else model
    chosen = _named(samples, name, precision)
    if callable(model) and isinstance(chosen, NetworkPlan):
        # a network of the user's own; it gets images as floats around 0, channels first
        make = partial(_normalised, model) if samples.kind == "images" else model
        chosen = replace(chosen, model=_described(model), make_model=make)
    return replace(chosen, precision=precision) if isinstance(chosen, NetworkPlan) else chosen


def stored_model(config: Mapping[str, object]) -> str | None:
    """The model that a scan's configuration names, as it is called now; None: it was chosen from the data."""
    former = {words: name for name, words in DESCRIBED.items()}
    name = config.get("model_name")
    return None if name is None else former.get(str(config.get("model")), str(name))


def check_model(model: str | MakeModel | None) -> int | None:
    """Raise `ModelError` for an unknown model before data are loaded; returns the image size of a pretrained model."""
    if not isinstance(model, str):
        return None
    names.check(model)
    return names.image_size(model) if names.takes_images(model) else None


def _named(samples: Samples, name: str, precision: str) -> NetworkPlan | BoostingPlan:
    names.check(name, samples.kind)
    if names.is_pretrained(name):
        return _pretrained(samples, name, precision)
    make = names.row(name).make
    return OTHERS[samples.kind, name](samples) if make is None else _images(samples, name, make)


def _described(make_model: MakeModel) -> str:
    """A name for the user's own network that includes a hash of its layers."""
    layers = repr(build(make_model, 2, seed=0))
    return f"the user's own ({hashlib.sha256(layers.encode()).hexdigest()[:8]})"


def _pretrained(samples: Samples, name: str, precision: str) -> NetworkPlan:
    """A small network on the features of a pretrained one, or the pretrained network itself if it is fine-tuned."""
    from undermargin.models.pretrained import frozen, tuned

    if names.is_tuned(name):
        inputs, make = tuned.transformer(name, samples.inputs)
        return NetworkPlan(name, make, inputs, Budget(**tuned.TUNING))
    vectors = standardised(frozen.features(name, samples.inputs, device=str(accelerator(precision).device)))
    chosen = _vectors(vectors, f"{name} and one hidden layer")
    return replace(chosen, budget=replace(chosen.budget, epochs=min(chosen.budget.epochs, FEATURE_EPOCHS)))


def _normalised(make_model: MakeModel, num_outputs: int, *, from_black: bool = False) -> nn.Module:
    return Normalised(make_model(num_outputs), from_black=from_black)


def _images(samples: Samples, name: str, make_network: MakeNetwork) -> NetworkPlan:
    _, height, width, channels = samples.inputs.shape
    side = min(height, width)
    # grayscale images are mostly digits and letters, which must not be mirrored; color images are photos
    augment = Augmentation(pixels=max(1, side // 8), flips=channels == 3)
    pixels = samples.inputs if isinstance(samples.inputs, Pixels) else torch.from_numpy(samples.inputs)
    if side < TINY and name == names.default("images"):
        small: MakeModel = partial(_normalised, partial(small_cnn, channels=channels), from_black=True)
        budget = Budget(_between(90_000 / len(samples), 10, 60), 32, weight_decay=1e-3)
        return NetworkPlan("a small convolutional network", small, (pixels,), budget, augment)
    make: MakeModel = partial(_normalised, partial(make_network, channels=channels, side=side))
    budget = Budget(_between(500_000 / len(samples), 12, 60), 64)
    return NetworkPlan(DESCRIBED.get(name, name), make, (pixels,), budget, augment)


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
# how samples become inputs of the models that are no networks for images
OTHERS: Mapping[tuple[Kind, str], Callable[[Samples], NetworkPlan | BoostingPlan]] = MappingProxyType(
    {
        ("text", "latent"): _text,
        ("table", "network"): _table,
        ("table", "boosting"): _boosting,
        ("embeddings", "network"): _embeddings,
        ("embeddings", "linear"): _linear,
        ("embeddings", "boosting"): _boosting,
    }
)
