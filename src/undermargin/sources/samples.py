"""A loaded data set: inputs of one kind, labels, names, what was guessed about it and what had to be left out."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.labels import Labels

Kind = Literal["images", "text", "table", "embeddings"]
OnRead = Callable[[int, int], None]  # images read so far, images in all


@dataclass(frozen=True)
class Reading:
    """How to read a source, where looking at it does not tell."""

    label: str | None = None  # names of columns
    text: str | None = None
    image: str | None = None
    where: str | None = None  # COLUMN=VALUE: only these rows
    image_size: int | None = None  # side in pixels
    memory: int | None = None  # bytes that the data may take in memory; None: half of what is free
    spill: Path | None = None  # the file that takes the pixels of images that do not fit into memory
    on_read: OnRead = lambda done, total: None  # noqa: ARG005 - called from time to time while images are read
    split: str | None = None  # of a folder or a data set that has several, such as train and test
    id: str | None = None  # the column that names the samples

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Reading":
        """How a scan read its data, from config["source"]."""
        names = ("label", "text", "image", "where", "image_size", "split", "id")
        return cls(**{name: found[name] for name in names if found.get(name) is not None})

    @property
    def allowed_bytes(self) -> int:
        """Memory that the data may take."""
        if self.memory is not None:
            return self.memory
        import psutil

        return int(psutil.virtual_memory().available // 2)

    def spill_for(self, num_images: int, size: int) -> Path | None:
        """The file for the pixels of this many images, or None if they fit into memory."""
        allowed = self.allowed_bytes
        needed = num_images * size * size * 3
        if needed > allowed and self.spill is None:
            raise InputError(f"{num_images} images take {needed:,} bytes as pixels, but only {allowed:,} are allowed")
        return self.spill if needed > allowed else None


@dataclass(frozen=True, eq=False)
class Columns:
    """The features of a table: numbers, NaN where missing; categories as codes, 0 where missing."""

    numbers: npt.NDArray[np.float32]  # (samples, numeric columns)
    codes: npt.NDArray[np.int64]  # (samples, category columns)
    number_names: list[str]
    categories: dict[str, list[str]]  # for each category column: what codes 1, 2, ... stand for
    raw_numbers: npt.NDArray[np.float32] | None = None  # with infinite values, where there were any: the fingerprint's

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def num_codes(self) -> list[int]:
        """Number of codes of each category column, 0 included."""
        return [len(values) + 1 for values in self.categories.values()]

    def row(self, index: int) -> dict[str, Any]:
        """One sample's features by name: numbers and categories, None where missing."""
        numbers = {name: float(value) for name, value in zip(self.number_names, self.numbers[index], strict=True)}
        codes = zip(self.categories.items(), self.codes[index].tolist(), strict=True)
        missing = {name: None for name, value in numbers.items() if value != value}
        return numbers | missing | {name: values[code - 1] if code else None for (name, values), code in codes}


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set. `inputs`: images uint8 (samples, height, width, channels), in memory or as `Pixels` on disk;
    a list of texts; `Columns`; or embeddings float32 (samples, numbers)."""

    kind: Kind
    inputs: Any
    labels: Labels
    class_names: list[str]
    ids: list[str] | None = None
    found: dict[str, Any] = field(default_factory=dict)  # where it was, and what was guessed about it
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (id, reason)

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise InputError(f"{len(self.labels)} labels for {len(self.inputs)} samples; expected one per sample")
        if self.ids is not None and len(set(self.ids)) < len(self.ids):
            raise InputError(f"{len(self.ids) - len(set(self.ids))} ids occur more than once; ids must be unique")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """One input and its label; the input of a table is a pair of numbers and codes."""
        if not 0 <= index < len(self):
            raise IndexError(f"there is no sample {index}; indices are 0..{len(self) - 1}")
        inputs = self.inputs
        one = (inputs.numbers[index], inputs.codes[index]) if isinstance(inputs, Columns) else inputs[index]
        return one, int(self.labels[index])

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def fingerprint(self) -> str:
        """A checksum of inputs and labels: scans with the same fingerprint saw the same data."""
        digest = hashlib.sha256(repr((self.kind, self.class_names)).encode())
        digest.update(self.labels.tobytes())
        if self.kind == "text":
            for text in self.inputs:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        elif isinstance(self.inputs, Columns):
            numbers = self.inputs.numbers if self.inputs.raw_numbers is None else self.inputs.raw_numbers
            digest.update(numbers.tobytes() + self.inputs.codes.tobytes())
        elif isinstance(self.inputs, np.ndarray):
            digest.update(np.ascontiguousarray(self.inputs).data)
        else:
            for block in self.inputs.blocks():
                digest.update(block.data)
        return digest.hexdigest()[:16]
