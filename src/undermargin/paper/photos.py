"""Decoded photos; sets that do not fit into memory are decoded once for all cells that read them."""

import hashlib
import json
from pathlib import Path

import numpy as np

from undermargin.sources.official.record import OfficialSet
from undermargin.sources.pixels import Bytes, Pixels, Skipped
from undermargin.sources.samples import Reading
from undermargin.storage.files import replacing
from undermargin.storage.locks import only_one


def read(photos: OfficialSet, size: int | None, folder: Path) -> tuple[Bytes | Pixels, Skipped]:
    """Pixels in memory or in a file in `folder`, and the photos that could not be read."""
    if isinstance(photos.images, np.ndarray):
        return photos.samples(Reading(image_size=size)).inputs, []
    place = folder / _digest(photos, size)
    place.mkdir(parents=True, exist_ok=True)
    about, pixels = place / "about.json", place / "pixels"
    with only_one(place / "lock"):  # a cell that runs at the same time may need the same photos
        if about.is_file():  # written last, so the pixels are complete
            found = json.loads(about.read_text())
            return Pixels(pixels, tuple(found["shape"])), [(name, why) for name, why in found["skipped"]]
        samples = photos.samples(Reading(image_size=size, spill=pixels))
        if isinstance(samples.inputs, Pixels):
            with replacing(about) as partial:
                partial.write_text(json.dumps({"shape": samples.inputs.shape, "skipped": samples.skipped}))
    return samples.inputs, samples.skipped


def _digest(photos: OfficialSet, size: int | None) -> str:
    words = "\n".join([photos.found.get("path", ""), str(size), *photos.ids])
    return hashlib.sha256(words.encode()).hexdigest()[:16]
