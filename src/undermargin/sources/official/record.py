"""What a loader of an official data set is given, and what it returns."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.pixels import Bytes, decode_all, shrunk
from undermargin.sources.samples import Reading, Samples

Split = Literal["train", "val", "test"]


@dataclass(frozen=True)
class Request:
    """Which part of a data set to load, and from where."""

    root: Path
    split: Split = "train"
    column: str | None = None  # column of labels, if there are several
    seed: int = 0  # of a random subset
    check: bool = True  # compare checksums, if they are known


class Files(Protocol):
    """Encoded images in files or archives, each read on request."""

    @property
    def ids(self) -> Sequence[str]:
        """The name of each image: its path below the data set."""

    def read(self, index: int) -> bytes:
        """The file of one image."""


class Chosen:
    """A subset of the images, in any order."""

    def __init__(self, files: Files, rows: npt.NDArray[np.int64]) -> None:
        self.files, self.rows = files, rows
        self.ids = [files.ids[row] for row in rows]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        return self.files.read(self.rows[index])


class Joined:
    """The images of one set, followed by those of another."""

    def __init__(self, first: Files, second: Files) -> None:
        self.first, self.second = first, second
        self.ids = [*first.ids, *second.ids]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        behind = index - len(self.first.ids)
        return self.first.read(index) if behind < 0 else self.second.read(behind)


@dataclass(frozen=True, eq=False)
class OfficialSet:
    """A split of a data set. `images`: uint8 (samples, height, width, channels), or `Files` if they are many."""

    images: Bytes | Files
    labels: Labels
    class_names: list[str]
    true_labels: Labels | None = None
    found: dict[str, str] = field(default_factory=dict)  # path and format
    names: list[str] | None = None  # names of the files that images in memory were read from

    def __post_init__(self) -> None:
        num_images = len(self.images) if isinstance(self.images, np.ndarray) else len(self.images.ids)
        if num_images != len(self.labels):
            raise InputError(f"{self.found.get('path')} has {num_images} images and {len(self.labels)} labels")
        if not num_images:
            raise InputError(f"{self.found.get('path')} has no samples; download it again")
        if not 0 <= self.labels.min() <= self.labels.max() < len(self.class_names):
            raise InputError(
                f"{self.found.get('path')} has labels from {self.labels.min()} to {self.labels.max()}, "
                f"expected 0..{len(self.class_names) - 1}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def ids(self) -> Sequence[str]:
        """The name of each image, or its position if images have no names."""
        return self.file_names or [str(place) for place in range(len(self))]

    @property
    def file_names(self) -> Sequence[str] | None:
        """Names of the image files, below the data set; None if images are not files of their own."""
        return self.names if isinstance(self.images, np.ndarray) else self.images.ids

    def subset(self, rows: npt.NDArray[np.int64]) -> "OfficialSet":
        """Only these samples, in this order; the classes stay."""
        images = self.images[rows] if isinstance(self.images, np.ndarray) else Chosen(self.images, rows)
        true_labels = None if self.true_labels is None else self.true_labels[rows]
        names = None if self.names is None else [self.names[row] for row in rows]
        return OfficialSet(images, self.labels[rows], self.class_names, true_labels, self.found, names)

    def samples(self, reading: Reading | None = None) -> Samples:
        """Samples to train on, scaled to `reading.image_size`; files are decoded into memory or `reading.spill`."""
        images = self.images
        reading = reading or Reading()
        size = reading.image_size
        if isinstance(images, np.ndarray):
            small = images if size is None else shrunk(images, size)
            return Samples("images", small, self.labels, self.class_names, self.names, dict(self.found))
        if size is None:
            raise InputError(f"the images of {self.found.get('path')} have many sizes; choose a side in pixels")
        pixels, kept, skipped = decode_all(reads(images), len(self), size, reading)
        ids = [images.ids[row] for row in kept]
        found = self.found | {"image_size": size}
        return Samples("images", pixels, self.labels[kept], self.class_names, ids, found, skipped)


def reads(files: Files) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """(id, read) of every image, as `decode_all` takes them."""
    return ((name, partial(files.read, index)) for index, name in enumerate(files.ids))


def decoded(files: Files, size: int) -> Bytes:
    """All images in memory, (samples, size, size, 3); an unreadable image is an error, none is left out."""
    images, _, skipped = decode_all(reads(files), len(files.ids), size, Reading(memory=sys.maxsize))
    if skipped:
        raise InputError(
            f"{len(skipped)} of {len(files.ids)} images cannot be read, the first is {skipped[0][0]}: {skipped[0][1]}; "
            "download the data set again"
        )
    return np.asarray(images)


def whole_numbers(values: Any, name: str, path: Path) -> Labels:
    """Labels (samples,) read from a file; raise if they are not one whole number per sample."""
    array = np.asarray(values, None if isinstance(values, np.ndarray) else object)
    if array.ndim != 1 or not all(isinstance(value, int) for value in array.tolist()):
        raise InputError(f"{name} in {path} does not hold one whole number per sample; download it again")
    return array.astype(np.int64)


def first_there(root: Path, places: Sequence[str]) -> Path | None:
    """The first of these paths below `root` that exists."""
    return next((root / place for place in places if (root / place).exists()), None)


def first_with(root: Path, places: Sequence[str], marks: Sequence[str]) -> Path | None:
    """The first of these folders below `root` in which one of the marks exists."""
    return next((root / place for place in places if first_there(root / place, marks)), None)
