"""A data set as it was found: inputs of one kind, labels, names, and what had to be left out."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Kind = Literal["images", "text", "table", "embeddings"]
Labels = npt.NDArray[np.int64]
OnRead = Callable[[int, int], None]  # how many images were read, of how many

ID_LIKE_SHARE = 0.5  # of distinct labels among the samples: then they are names of samples, not of classes


@dataclass(frozen=True)
class Reading:
    """How a source is to be read, where that is not plain from looking at it."""

    label: str | None = None  # names of columns
    text: str | None = None
    image: str | None = None
    where: str | None = None  # COLUMN=VALUE: these rows only
    image_size: int | None = None  # a side, in pixels
    memory: int | None = None  # bytes that images may take in memory; half of what is free
    spill: Path | None = None  # the file that takes their pixels when they are more
    on_read: OnRead = lambda done, total: None  # noqa: ARG005 - called now and then while images are read

    def spill_for(self, num_images: int, size: int) -> Path | None:
        """Where the pixels of so many images go: a file, or None for memory."""
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        allowed = free // 2 if self.memory is None else self.memory
        needed = num_images * size * size * 3
        if needed > allowed and self.spill is None:
            raise InputError(f"{num_images} images need {needed:,} bytes as pixels, {allowed:,} are allowed")
        return self.spill if needed > allowed else None


@dataclass(frozen=True, eq=False)
class Columns:
    """A table's features: numbers with nan where missing, and categories as codes with 0 for missing."""

    numbers: npt.NDArray[np.float32]  # (samples, numeric columns)
    codes: npt.NDArray[np.int64]  # (samples, category columns)
    number_names: list[str]
    categories: dict[str, list[str]]  # of each category column: what the codes from 1 on stand for

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def num_codes(self) -> list[int]:
        """Of each category column, the 0 included."""
        return [len(values) + 1 for values in self.categories.values()]


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set. `inputs`: images uint8 (samples, height, width, channels) in memory or as `Pixels` on disk,
    a list of texts, `Columns`, or embeddings float32 (samples, numbers)."""

    kind: Kind
    inputs: Any
    labels: Labels
    class_names: list[str]
    ids: list[str] | None = None
    found: dict[str, Any] = field(default_factory=dict)  # where it was, and what was guessed about it
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (id, reason)

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise InputError(f"{len(self.labels)} labels for {len(self.inputs)} samples; expected one each")
        if self.ids is not None and len(set(self.ids)) < len(self.ids):
            raise InputError(f"{len(self.ids) - len(set(self.ids))} ids occur more than once; ids must be unique")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """An input and its label; of a table, its numbers and codes."""
        if not 0 <= index < len(self):
            raise IndexError(f"there is no sample {index}; there are {len(self)}")
        inputs = self.inputs
        one = (inputs.numbers[index], inputs.codes[index]) if isinstance(inputs, Columns) else inputs[index]
        return one, int(self.labels[index])

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    def fingerprint(self) -> str:
        """A checksum of inputs and labels: two scans with the same one saw the same data."""
        digest = hashlib.sha256(repr((self.kind, self.class_names)).encode())
        digest.update(self.labels.tobytes())
        if self.kind == "text":
            for text in self.inputs:
                digest.update(text.encode() + b"\0")
        elif self.kind == "table":
            digest.update(self.inputs.numbers.tobytes() + self.inputs.codes.tobytes())
        elif isinstance(self.inputs, np.ndarray):
            digest.update(np.ascontiguousarray(self.inputs).data)
        else:
            for block in self.inputs.blocks():
                digest.update(block.data)
        return digest.hexdigest()[:16]


def encode_labels(values: Sequence[Any], *, name: str = "the labels") -> tuple[Labels, list[str]]:
    """Class numbers and names from strings, whole numbers or booleans.

    >>> encode_labels(["dog", "cat", "dog", "dog"])
    (array([1, 0, 1, 1]), ['cat', 'dog'])
    """
    values = list(values)
    if any(isinstance(value, (list, tuple, dict, np.ndarray)) for value in values):
        raise InputError(f"{name} hold lists: several labels a sample (multi-label, detection) are not supported")
    array = np.asarray(values, dtype=object)
    missing = sum(value is None or value != value or value == "" for value in array)
    if missing:
        raise InputError(f"{missing} of {len(array)} samples have no label in {name}; give them one or take them out")
    if any(isinstance(value, (float, np.floating)) and not float(value).is_integer() for value in array):
        raise InputError(f"{name} hold fractions such as {array[0]}; expected classes, not numbers to be predicted")
    distinct = sorted(set(array.tolist()), key=lambda value: (str(type(value)), value))
    _check_classes(len(distinct), len(array), name)
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in array], dtype=np.int64), [_name(value) for value in distinct]


def _check_classes(num_classes: int, num_samples: int, name: str) -> None:
    if num_classes < 2:
        raise InputError(
            f"{name} hold one class only, in {num_samples} samples; a label can only be wrong among two or more"
        )
    if num_samples < 2 * num_classes or num_classes > ID_LIKE_SHARE * num_samples:
        raise InputError(
            f"{name} hold {num_classes} different values in {num_samples} samples: they look like ids or too few "
            "samples for so many classes; name the column of classes"
        )


def _name(value: Any) -> str:
    return str(int(value)) if isinstance(value, (float, np.floating)) else str(value)
