"""What every loader of an official data set is asked, and what it gives."""

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
    """Which part of a data set is wanted, and from where."""

    root: Path
    split: Split = "train"
    column: str | None = None  # of labels, where a set has several
    seed: int = 0  # of a random subset
    check: bool = True  # compare checksums, where they are known


class Files(Protocol):
    """Encoded images, in files or in archives; none is read before it is asked for."""

    @property
    def ids(self) -> Sequence[str]:
        """What each image is called: its path below the data set."""

    def read(self, index: int) -> bytes:
        """The file of one image."""


class Chosen:
    """Some of the images, in another order."""

    def __init__(self, files: Files, rows: npt.NDArray[np.int64]) -> None:
        self.files, self.rows = files, rows
        self.ids = [files.ids[row] for row in rows]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        return self.files.read(self.rows[index])


class Joined:
    """The images of one set and, behind them, those of another."""

    def __init__(self, first: Files, second: Files) -> None:
        self.first, self.second = first, second
        self.ids = [*first.ids, *second.ids]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        behind = index - len(self.first.ids)
        return self.first.read(index) if behind < 0 else self.second.read(behind)


@dataclass(frozen=True, eq=False)
class OfficialSet:
    """A part of a data set. `images`: uint8 (samples, height, width, channels), or `Files` where they are many."""

    images: Bytes | Files
    labels: Labels
    class_names: list[str]
    true_labels: Labels | None = None
    found: dict[str, str] = field(default_factory=dict)  # where, and in which format
    names: list[str] | None = None  # of the files that images in memory were read from

    def __post_init__(self) -> None:
        num_images = len(self.images) if isinstance(self.images, np.ndarray) else len(self.images.ids)
        if num_images != len(self.labels):
            raise InputError(f"{self.found.get('path')} has {num_images} images and {len(self.labels)} labels")
        if not num_images:
            raise InputError(f"{self.found.get('path')} has no samples; get it again")
        if not 0 <= self.labels.min() <= self.labels.max() < len(self.class_names):
            raise InputError(
                f"{self.found.get('path')} has labels from {self.labels.min()} to {self.labels.max()}, "
                f"expected 0..{len(self.class_names) - 1}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def ids(self) -> Sequence[str]:
        """What each image is called, or its place where none has a name."""
        return self.file_names or [str(place) for place in range(len(self))]

    @property
    def file_names(self) -> Sequence[str] | None:
        """Of the images, below the data set; None where they have no files of their own."""
        return self.names if isinstance(self.images, np.ndarray) else self.images.ids

    def subset(self, rows: npt.NDArray[np.int64]) -> "OfficialSet":
        """These samples alone, in this order; the classes stay."""
        images = self.images[rows] if isinstance(self.images, np.ndarray) else Chosen(self.images, rows)
        true_labels = None if self.true_labels is None else self.true_labels[rows]
        names = None if self.names is None else [self.names[row] for row in rows]
        return OfficialSet(images, self.labels[rows], self.class_names, true_labels, self.found, names)

    def samples(self, reading: Reading | None = None) -> Samples:
        """Ready for a training, `reading.image_size` a side; files are decoded in memory or into `reading.spill`."""
        images = self.images
        reading = reading or Reading()
        size = reading.image_size
        if isinstance(images, np.ndarray):
            small = images if size is None else shrunk(images, size)
            return Samples("images", small, self.labels, self.class_names, self.names, dict(self.found))
        if size is None:
            raise InputError(f"the images of {self.found.get('path')} have many sizes; name the side, in pixels")
        pixels, kept, skipped = decode_all(reads(images), len(self), size, reading)
        ids = [images.ids[row] for row in kept]
        found = self.found | {"image_size": size}
        return Samples("images", pixels, self.labels[kept], self.class_names, ids, found, skipped)


def reads(files: Files) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """(id, read) of every image, as `decode_all` takes them."""
    return ((name, partial(files.read, index)) for index, name in enumerate(files.ids))


def decoded(files: Files, size: int) -> Bytes:
    """All images in memory, (samples, size, size, 3); one that cannot be read is an error, none is left out."""
    images, _, skipped = decode_all(reads(files), len(files.ids), size, Reading(memory=sys.maxsize))
    if skipped:
        raise InputError(
            f"{len(skipped)} of {len(files.ids)} images cannot be read, the first is {skipped[0][0]}: {skipped[0][1]}; "
            "get the data set again"
        )
    return np.asarray(images)


def whole_numbers(values: Any, name: str, path: Path) -> Labels:
    """Labels (samples,) as they were found in a file, if that is what they are."""
    array = np.asarray(values, None if isinstance(values, np.ndarray) else object)
    if array.ndim != 1 or not all(isinstance(value, int) for value in array.tolist()):
        raise InputError(f"{name} in {path} does not hold one whole number a sample; get it again")
    return array.astype(np.int64)


def first_there(root: Path, places: Sequence[str]) -> Path | None:
    """The first of these places below `root` that exists."""
    return next((root / place for place in places if (root / place).exists()), None)


def first_with(root: Path, places: Sequence[str], marks: Sequence[str]) -> Path | None:
    """The first of these places below `root` where one of the marks exists."""
    return next((root / place for place in places if first_there(root / place, marks)), None)
