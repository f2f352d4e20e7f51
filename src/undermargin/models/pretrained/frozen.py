"""Features of images and texts from a frozen pretrained network."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin.errors import InputError
from undermargin.models import names
from undermargin.models.pretrained.huggingface import tokens
from undermargin.models.pretrained.scaling import Scaling

Batches: TypeAlias = Iterator[tuple[Any, tuple[Tensor, ...]]]  # rows of the samples, and the network's inputs

BATCH_SIZE = 32


@torch.inference_mode()
def features(
    name: str,
    inputs: Any,
    *,
    on_batch: Callable[[int], None] = lambda done: None,  # noqa: ARG005
    device: str = "cpu",
) -> npt.NDArray[np.float32]:
    """Features of every sample from a frozen network: (samples, features).

    `inputs` are texts, or uint8 images (samples, height, width, 1 or 3). Any object with a length whose slices are
    arrays will do, so images need not fit into memory. `on_batch` is called with the number of samples done so far. The
    same inputs in the same order give the same features.
    """
    if len(inputs) == 0:
        raise InputError("inputs are empty; expected at least one sample")
    is_text = isinstance(inputs[:1][0], str)
    encoder, own_name = names.encoder(name, "text" if is_text else "images")
    prepared = encoder.prepare(own_name)
    batches = _text_batches(prepared, inputs) if is_text else _image_batches(prepared, inputs)
    network = encoder.load(own_name).eval().to(device)
    if not is_text:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found: npt.NDArray[np.float32] | None = None
    done = 0
    for rows, batch in batches:
        vectors = network(*(values.to(device) for values in batch)).cpu().numpy()
        if found is None:  # the number of features is known after the first batch only
            found = np.empty((len(inputs), vectors.shape[1]), np.float32)
        found[rows] = vectors
        done += len(vectors)
        on_batch(done)
    assert found is not None  # noqa: S101 - there was a sample
    return found


def _image_batches(scaling: Scaling, images: Any) -> Batches:
    for start in range(0, len(images), BATCH_SIZE):
        rows = slice(start, start + BATCH_SIZE)
        batch = np.asarray(images[rows])
        if batch.ndim != 4 or batch.shape[3] not in (1, 3) or batch.dtype != np.uint8:
            raise InputError(
                f"images have shape {batch.shape} and dtype {batch.dtype}; "
                "expected uint8 (samples, height, width, 1 or 3)"
            )
        yield rows, (scaling(batch),)


def _text_batches(tokenizer: Any, texts: Any) -> Batches:
    """Batches of texts of similar length, to limit padding; longest first, so that a lack of memory shows early."""
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    for start in range(0, len(order), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        yield rows, tokens(tokenizer, [str(texts[row]) for row in rows])
