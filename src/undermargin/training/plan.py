"""How a data set is trained on when nobody says otherwise: chosen from its kind and size.

AUM works while the network has not yet learned the wrong labels by heart, so small data get small networks,
dropout or augmentation, and few epochs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from undermargin.data.samples import Columns, Samples
from undermargin.errors import InputError
from undermargin.models.mlp import TableNet, head
from undermargin.models.resnet import ResNet
from undermargin.training.augmentation import augmentation
from undermargin.training.network import Augment, Budget, Inputs

Vectors = npt.NDArray[np.float32]

TEXT_NUMBERS = 256  # a text becomes this many, by latent semantic analysis
MAX_TERMS = 100_000


@dataclass(frozen=True)
class Plan:
    """What is trained on, by what network, and for how long."""

    inputs: Inputs
    make_model: Callable[[int], nn.Module]
    budget: Budget
    augment: Augment | None
    model: str  # what the network is called


def plan(samples: Samples, *, epochs: int | None = None) -> Plan:
    """The plan for these samples; `epochs` overrules its length."""
    make = {"images": _images, "text": _text, "table": _table, "embeddings": _embeddings}[samples.kind]
    return make(samples, epochs)


def _images(samples: Samples, epochs: int | None) -> Plan:
    pixels = torch.from_numpy(np.ascontiguousarray(samples.inputs.transpose(0, 3, 1, 2)))
    side, channels = min(pixels.shape[2:]), pixels.shape[1]
    model = partial(ResNet, channels=channels, blocks=1, stem_stride=2 if side > 32 else 1)
    budget = Budget(epochs or _between(200_000 / len(samples), 10, 60), 64)
    # digits and letters are grey and must not be mirrored; photos have colours
    augment = augmentation(pixels=max(1, side // 8), flips=channels == 3)
    return Plan((pixels,), model, budget, augment, "ResNet-8")


def _text(samples: Samples, epochs: int | None) -> Plan:
    return _vectors(_latent(samples.inputs), epochs, "latent semantic analysis and one hidden layer")


def _embeddings(samples: Samples, epochs: int | None) -> Plan:
    return _vectors(_standardised(samples.inputs), epochs, "one hidden layer")


def _table(samples: Samples, epochs: int | None) -> Plan:
    columns: Columns = samples.inputs
    missing = np.isnan(columns.numbers)
    shown = missing.any(0)  # that a number is missing may say something itself
    numbers = _standardised(columns.numbers)
    numbers[missing] = 0
    inputs = (
        torch.from_numpy(np.concatenate([numbers, missing[:, shown].astype(np.float32)], 1)),
        torch.from_numpy(columns.codes),
    )
    model = partial(TableNet, inputs[0].shape[1], columns.num_codes)
    return Plan(inputs, model, _budget(len(samples), epochs), None, "embedded categories and one hidden layer")


def _vectors(vectors: Vectors, epochs: int | None, model: str) -> Plan:
    inputs = torch.from_numpy(vectors)
    return Plan((inputs,), partial(head, inputs.shape[1]), _budget(len(vectors), epochs), None, model)


def _budget(num_samples: int, epochs: int | None) -> Budget:
    batch_size = 64 if num_samples <= 50_000 else 256
    length = epochs or _between(100_000 / num_samples, 5, 20)
    return Budget(length, batch_size, optimizer="adamw", learning_rate=3e-3)


def _between(value: float, low: int, high: int) -> int:
    return int(min(max(round(value), low), high))


def _standardised(values: Vectors) -> Vectors:
    """Mean 0 and deviation 1 in every column, missing numbers left out; wild outliers are pulled in."""
    with np.errstate(invalid="ignore"):
        centred = values - np.nan_to_num(np.nanmean(values, 0))
        deviation = np.nan_to_num(np.nanstd(centred, 0), nan=1.0)
    return np.asarray((centred / np.where(deviation > 0, deviation, 1)).clip(-10, 10), dtype=np.float32)


def _latent(texts: list[str]) -> Vectors:
    """Each text as a vector of length sqrt(numbers): TF-IDF of words and pairs of words, reduced."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        terms = TfidfVectorizer(
            sublinear_tf=True,
            ngram_range=(1, 2),
            min_df=2 if len(texts) > 1000 else 1,
            max_features=MAX_TERMS,
            token_pattern=r"\S+",  # noqa: S106 - not a password
        ).fit_transform(texts)
    except ValueError as error:
        raise InputError(f"the texts hold no words to learn from: {error}") from None
    size = min(TEXT_NUMBERS, min(terms.shape) - 1)
    vectors = TruncatedSVD(max(size, 1), random_state=0).fit_transform(terms)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1) * np.sqrt(max(size, 1)), dtype=np.float32)
