"""Features of images and texts from a pretrained network that stays as it is."""

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

Batches: TypeAlias = Iterator[tuple[Any, tuple[Tensor, ...]]]  # which samples, and what the network takes for them

BATCH_SIZE = 32


@torch.inference_mode()
def features(
    name: str,
    inputs: Any,
    *,
    on_batch: Callable[[int], None] = lambda done: None,  # noqa: ARG005
    device: str = "cpu",
) -> npt.NDArray[np.float32]:
    """What a frozen network makes of each sample: (samples, numbers).

    `inputs` are texts, or images as bytes (samples, height, width, 1 or 3): anything that has a length and gives
    `inputs[start:stop]` as an array, so images need not be in memory all at once. `on_batch(done)` hears how many
    samples are done. The same inputs in the same order give the same features.
    """
    if len(inputs) == 0:
        raise InputError("there are no samples to make features of")
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
        if found is None:  # only now is it known how many numbers a sample has
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
                f"images have shape {batch.shape} and type {batch.dtype}; "
                "expected bytes (samples, height, width, 1 or 3)"
            )
        yield rows, (scaling(batch),)


def _text_batches(tokenizer: Any, texts: Any) -> Batches:
    """Texts of like length together, so that little is padded; the longest first, so that memory runs out at once."""
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    for start in range(0, len(order), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        yield rows, tokens(tokenizer, [str(texts[row]) for row in rows])
