"""Data sets with one row per sample: texts, images or plain columns. What CSV, JSON, Parquet and others share."""

# ruff: noqa: ARG002, ARG003 - one signature for all formats

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import guessing, one_line
from undermargin.sources.base import Edit, Ints, Source
from undermargin.sources.columns import features, plain_types
from undermargin.sources.datasets_library import import_datasets
from undermargin.sources.evidence import changed, digest, record, recorded_digest
from undermargin.sources.image_columns import file_name, folder_of, image_bytes, load_images
from undermargin.sources.labels import encode_labels
from undermargin.sources.pictures import open_image
from undermargin.sources.samples import Reading, Samples

if TYPE_CHECKING:
    from PIL import Image


def from_table(table: pa.Table, reading: Reading, found: Mapping[str, Any], *, ids: list[str] | None = None) -> Samples:
    """Samples of a table in memory; columns that were not named are guessed. `ids` are used if no column names them."""
    guessing.check_names(table, reading)
    table = plain_types(table)
    where = reading.where
    rows = guessing.rows_where(table, where)
    if where:
        table, ids = table.take(rows), None if ids is None else [ids[row] for row in rows]
    if not len(table):
        raise InputError(f"{found.get('path', 'the table')} has no rows{f' where {where}' if where else ''}")
    label = reading.label or guessing.label_column(table)
    labels, class_names = encode_labels(table[label].to_pylist(), name=f"the labels in column {label!r}")
    told = {**found, "label": label, "guessed": [] if reading.label else [f"label: {label}"], "where": where}
    if reading.id is not None:
        told["id"] = reading.id
    used_up = {label, reading.id or label, where.partition("=")[0] if where else label} - {reading.text, reading.image}
    rest = table.drop_columns(sorted(used_up))
    ids = guessing.ids(table if reading.id else rest, reading.id) or ids
    image = reading.image or guessing.image_column(rest)
    if image and reading.text is None:
        return load_images(rest[image], labels, class_names, ids, told | {"image": image}, reading)
    text = reading.text or guessing.text_column(rest)
    if text:
        told["guessed"] += [] if reading.text else [f"text: {text}"]
        texts = ["" if value is None else str(value) for value in rest[text].to_pylist()]
        return Samples("text", texts, labels, class_names, ids, told | {"text": text})
    columns, infinite = features(rest)
    told["columns"] = [*columns.number_names, *columns.categories]
    if infinite:
        told["non_finite_cells"] = infinite
    return Samples("table", columns, labels, class_names, ids, told)


class Rows(Source):
    """A data set of rows; a format adds how they are read and written."""

    has_rows: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """All rows and columns at `path`; damaged data may raise anything."""

    @classmethod
    def files(cls, path: Path, reading: Reading) -> Sequence[Path]:
        """The files that hold the rows."""
        return [path]

    @classmethod
    def make_samples(cls, table: pa.Table, path: Path, reading: Reading) -> Samples:
        """The samples of the table that was read."""
        return from_table(table, reading, {"path": str(path)})

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Read the rows; columns that were not named are guessed where that is obvious, and `found` says so."""
        samples = cls.make_samples(cls.readable(path, reading), path, reading)
        samples.found["files"] = record(cls.files(path, reading))
        return samples

    @classmethod
    def readable(cls, path: Path, reading: Reading | None = None) -> pa.Table:
        """All rows and columns at `path`; damage becomes an InputError of one line."""
        with one_line.reading(path, cls.noun):
            table = cls.read(path, reading or Reading())
            table.validate(full=True)
            _ = table.column_names  # names that are not text show here
        return table

    @cached_property
    def _table(self) -> pa.Table:
        return plain_types(self.readable(self.place, self.reading))

    @property
    def table(self) -> pa.Table:
        """All rows and columns as they are."""
        self.check()
        return self._table

    @cached_property
    def rows(self) -> Ints:
        """Where each sample is in `table`: (samples,)."""
        chosen = guessing.rows_where(self._table, self.reading.where)
        skipped = self.found.get("skipped_rows", [])
        chosen = np.delete(chosen, [row for row in skipped if row < len(chosen)])
        if len(chosen) != len(self.ids):
            raise self.has_changed(f"it now has {len(chosen)} samples, the scan saw {len(self.ids)}")
        return chosen

    def prepare(self) -> None:
        """Read the table."""
        self.check()
        _ = self.rows

    def _check(self, *, is_thorough: bool) -> None:
        recorded = self.found.get("files")
        if recorded is None or changed(self.files(self.place, self.reading), recorded):
            self._check_rows(is_recorded=recorded is not None, is_thorough=is_thorough)
        if is_thorough and "image_files" in self.found:
            files = [self._image_file(index) for index in range(len(self.ids))]
            if others := changed(files, self.found["image_files"]):
                raise self.has_changed(f"{len(others)} of {len(files)} images, the first is {files[others[0]]}")

    def _check_rows(self, *, is_recorded: bool, is_thorough: bool) -> None:
        """Compare the rows themselves: the file may have changed in rows that were not scanned."""
        _ = self.rows
        if self.fingerprint is None and is_recorded:
            raise self.has_changed()
        is_cheap = self.kind != "images" or is_recorded  # scans of version 0.1 would have all images decoded again
        if self.fingerprint is not None and (is_cheap or is_thorough):
            self.compare(lambda reading: self.make_samples(self._table, self.place, reading))

    def row(self, index: int) -> dict[str, Any]:
        """A sample's row as it is: the value of every column, the label included."""
        return dict(self.table.slice(int(self.rows[index]), 1).to_pylist()[0])

    def column(self, name: str) -> pa.ChunkedArray:
        """The values of a column, one per sample."""
        if name not in self.table.column_names:
            raise InputError(f"no column is called {name!r}; columns are {', '.join(self.table.column_names)}")
        return self.table[name].take(pa.array(self.rows))

    def text(self, index: int) -> str:
        """A sample's text."""
        value = self._cell(index, "text")
        return "" if value is None else str(value)

    def image(self, index: int, side: int) -> "Image.Image":
        """A sample's picture; one from a file of its own is compared with what was scanned."""
        value = self._cell(index, "image")
        data = image_bytes(value, folder_of(self.found))
        recorded = self.found.get("image_files")
        if recorded is not None and digest(data) != recorded_digest(recorded, index):
            raise self.has_changed(f"the image {file_name(value)} is another one")
        return open_image(data, side)

    def _cell(self, index: int, role: str) -> Any:
        if role not in self.found:
            raise InputError(f"samples of kind {self.kind} have no {role}")
        return self.table[self.found[role]][int(self.rows[index])].as_py()

    def _image_file(self, index: int) -> Path:
        value = self._table[self.found["image"]][int(self.rows[index])].as_py()
        return (folder_of(self.found) or Path()) / (file_name(value) or "")

    def dataset(self, rows: Ints, labels: Ints, class_names: Sequence[str]) -> Any:
        """These samples as a data set of the `datasets` library; columns stay as they are."""
        return import_datasets().Dataset(self.table.take(pa.array(self.rows[rows])))

    def rewrite(self, target: Path, edit: Edit, *, is_linked: bool = False) -> None:
        """Write the rows that stay, in the format they came in."""
        self.check(is_thorough=True)
        with one_line.rewriting(self.path):
            self.write_rows(target, edit.of_rows(self.rows, len(self._table)))

    @abstractmethod
    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the rows that stay; `edit` is about all rows of the table."""
