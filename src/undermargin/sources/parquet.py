"""Parquet: one file, or a folder of files. Cleaned one row group at a time: same schema, metadata and compression."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit
from undermargin.sources.class_folders import ClassFolders
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading, Samples
from undermargin.storage.files import making, replacing

CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}  # names in a file, and what the writer calls them


class Parquet(Rows):
    """A Parquet file; or the files of a folder, or those of one split, as one table in the order of their names."""

    noun: ClassVar[str] = "Parquet"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a folder holds Parquet files, or folders of splits that do, and no images."""
        folders = [path, *(child for child in path.iterdir() if child.is_dir() and splits.is_split(child.name))]
        return any(map(_files_in, folders)) and not ClassFolders.recognizes(path)

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Read the rows; a folder with a single file, or a split with one, is the same as that file."""
        if path.is_file():
            splits.refuse(path, reading.split)
            return super().load(path, reading)
        path, files, split = _chosen(path, reading.split)
        samples = super().load(files[0] if len(files) == 1 else path, replace(reading, split=split))
        if split is not None and len(files) > 1:
            samples.found["split"] = split
        if split is not None and reading.split is None:
            samples.found["guessed"].append(f"split: {split}")
        return samples

    @classmethod
    def files(cls, path: Path, reading: Reading) -> Sequence[Path]:
        """The files that hold the rows."""
        return [path] if path.is_file() else _chosen(path, reading.split)[1]

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The rows of all files, whose columns must agree."""
        return _concatenated(cls.files(path, reading))

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the rows that stay; a row group that loses all of its rows goes, too."""
        files = self.files(self.place, self.reading)
        labels = _concatenated(files, [str(self.label_column)])[self.label_column].unify_dictionaries()
        if len(labels) != len(edit.is_kept):
            raise InputError(f"{self.path} now has {len(labels)} rows, the scan saw {len(edit.is_kept)}")
        if self.place.is_file():
            with replacing(target) as partial:
                self._write_file(self.place, partial, labels, edit, 0)
            return
        start = 0
        with making(target) as folder:
            for file in files:
                start = self._write_file(file, folder / file.name, labels, edit, start)

    def _write_file(self, source: Path, target: Path, labels: pa.ChunkedArray, edit: Edit, start: int) -> int:
        """Write one file whose rows begin at `start`; returns where they end."""
        with pq.ParquetFile(source) as file:
            schema = file.schema_arrow
            place = schema.get_field_index(self.label_column)
            with pq.ParquetWriter(target, schema, compression=_compression(file.metadata)) as writer:
                for number in range(file.metadata.num_row_groups):
                    group = file.read_row_group(number)
                    rows = slice(start, start + len(group))
                    start = rows.stop
                    taken = labels.take(pa.array(edit.label_from[rows]))
                    group = group.set_column(place, schema.field(place), taken)
                    if np.any(edit.is_kept[rows]):
                        writer.write_table(group.filter(pa.array(edit.is_kept[rows])), row_group_size=len(group))
        return start


def _files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() == ".parquet" and file.is_file())


def _concatenated(files: Sequence[Path], columns: list[str] | None = None) -> pa.Table:
    tables = []
    for file in files:
        with pq.ParquetFile(file) as opened:
            tables.append(opened.read(columns))
        if not tables[-1].schema.equals(tables[0].schema):
            raise InputError(
                f"{file} has other columns than {files[0].name}: they are not parts of one data set; scan one of them"
            )
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _chosen(path: Path, wanted: str | None) -> tuple[Path, list[Path], str | None]:
    """The folder, the files to read and the split they are of, if the files or folders are those of splits."""
    files = _files_in(path)
    if not files:
        folders = sorted(child.name for child in path.iterdir() if child.is_dir() and _files_in(child))
        split = splits.choose(path, folders, wanted)
        return path / split, _files_in(path / split), split
    by_split = {file: splits.split_of(file.stem) for file in files}
    names = sorted({name for name in by_split.values() if name is not None})
    if len(names) > 1 or wanted is not None:
        split = splits.choose(path, names, wanted)
        return path, [file for file in files if by_split[file] == split], split
    return path, files, None


def _compression(about: pq.FileMetaData) -> dict[str, str] | str:
    if not about.num_row_groups:
        return "snappy"
    columns = [about.row_group(0).column(number) for number in range(about.num_columns)]
    return {column.path_in_schema: CODECS.get(column.compression, column.compression) for column in columns}
