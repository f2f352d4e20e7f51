"""A scan's data set as it lies on disk, one sample at a time: what the report, the page and cleaning show or copy."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources.arrays import load_arrays
from undermargin.sources.pictures import open_image
from undermargin.sources.rows import FORMATS, image_bytes, read_table, rows_where
from undermargin.sources.samples import Kind

CLASS_FOLDERS, ARRAYS, DATASET = "class folders", "arrays", "Dataset"
PIXELATED = 64  # a side, in pixels: up to here an image is shown as large squares


@dataclass(frozen=True)
class Originals:
    """Made from what a scan's config.json says about its source; reads nothing before it is asked to.

    `source` is config["source"]. A data set that was scanned from memory has no path: `is_there` is False.
    """

    source: Mapping[str, Any]
    kind: Kind
    ids: Sequence[str]  # in the order of the data set

    @property
    def path(self) -> Path | None:
        """Where the data set is, if it is on disk."""
        return Path(self.source["path"]) if "path" in self.source else None

    @property
    def format(self) -> str:
        """Class folders, CSV, TSV, JSON lines, Parquet, arrays, Dataset."""
        return str(self.source["format"])

    @property
    def is_there(self) -> bool:
        """Whether samples can be shown."""
        return self.path is not None and self.path.exists()

    @cached_property
    def table(self) -> pa.Table:
        """All rows and columns of a file of rows or of a Hugging Face folder, as they are."""
        if self.path is None:
            raise InputError("the data set was scanned from memory; there is no file to look into")
        if self.format == DATASET:
            import datasets

            return datasets.load_from_disk(str(self.path)).with_format("arrow")[:]
        if self.format not in FORMATS.values():
            raise InputError(f"{self.path} has no rows: it is {self.format}")
        return read_table(self.path)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Where each sample is in `table`: (samples,)."""
        chosen = rows_where(self.table, self.source.get("where"))
        chosen = np.delete(chosen, self.source.get("skipped_rows", []))
        if len(chosen) != len(self.ids):
            raise InputError(
                f"{self.path} now has {len(chosen)} samples, the scan saw {len(self.ids)}; has it changed since?"
            )
        return chosen

    @cached_property
    def _arrays(self) -> Any:
        assert self.path is not None  # noqa: S101 - for the type checker
        return load_arrays(self.path).inputs

    def array(self, index: int) -> npt.NDArray[Any]:
        """A sample of a file of arrays: pixels (height, width[, 3]), or the numbers of an embedding."""
        values = np.asarray(self._arrays[index])
        return values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values

    def row(self, index: int) -> dict[str, Any]:
        """A row as it is, its label included: a value for each column."""
        return dict(self.table.slice(int(self.rows[index]), 1).to_pylist()[0])

    def text(self, index: int) -> str:
        """A sample's text."""
        value = self.table[self.source["text"]][int(self.rows[index])].as_py()
        return "" if value is None else str(value)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column, a value a sample."""
        if name not in self.table.column_names:
            raise InputError(f"there is no column {name!r}; there are {', '.join(self.table.column_names)}")
        return self.table[name].take(self.rows)

    def file(self, index: int) -> Path:
        """A sample's own file in class folders; one that is not below the data set's folder is refused."""
        if self.path is None or self.format != CLASS_FOLDERS:
            raise InputError(f"samples of {self.format} have no files of their own")
        root = self.path.resolve()
        file = (root / self.ids[index]).resolve()
        if not file.is_relative_to(root):
            raise InputError(f"{self.ids[index]} is not below {root}")
        return file

    def picture(self, index: int, side: int) -> bytes:
        """An image, at most `side` pixels along each side, as JPEG made anew; never the file's own bytes."""
        from PIL import Image

        if self.format == CLASS_FOLDERS:
            image = open_image(_read(self.file(index)))
        elif self.format == ARRAYS:
            image = Image.fromarray(self.array(index))
        else:
            root = self.path.parent if self.path else None
            image = open_image(image_bytes(self.table[self.source["image"]][int(self.rows[index])].as_py(), root))
        small = max(image.size) <= min(PIXELATED, side / 2)
        if small:  # a few large pixels are easier to look at than a blur
            factor = side // max(image.size)
            image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
        image.thumbnail((side, side))
        data = io.BytesIO()
        image.convert("RGB").save(data, "JPEG", quality=90 if small else 82)
        return data.getvalue()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file.name} cannot be read: {error.strerror}") from None
