"""A folder that the `datasets` library saved. It is read without memory mapping and checked before use: a damaged file
would otherwise end the process."""

# ruff: noqa: ARG002, ARG003 - one signature for all formats

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import one_line, splits
from undermargin.sources.base import Edit, Ints
from undermargin.sources.datasets_library import import_datasets, no_progress_bars
from undermargin.sources.rows import Rows
from undermargin.sources.samples import Reading, Samples
from undermargin.storage.files import making

DICT, INFO, STATE = "dataset_dict.json", "dataset_info.json", "state.json"


class HuggingFaceFolder(Rows):
    """`save_to_disk` of a data set, or of one split of several."""

    noun: ClassVar[str] = "a Hugging Face data set"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether the library's own files are there."""
        return (path / DICT).is_file() or (path / INFO).is_file()

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Read the rows; names of a ClassLabel feature become the names of the classes."""
        if (path / DICT).is_file():
            path /= splits.choose(path, _split_names(path), reading.split)
        else:
            splits.refuse(path, reading.split)
        return super().load(path, replace(reading, split=None))

    @classmethod
    def files(cls, path: Path, reading: Reading) -> Sequence[Path]:
        """The Arrow files, in the order of their rows, and what is said about their columns."""
        return [*_arrow_files(path), path / INFO]

    @classmethod
    def read(cls, path: Path, reading: Reading) -> pa.Table:
        """The rows, every buffer of them checked."""
        return pa.concat_tables([_checked_table(file) for file in _arrow_files(path)])

    @classmethod
    def make_samples(cls, table: pa.Table, path: Path, reading: Reading) -> Samples:
        """The samples of the table, with the names of its ClassLabel feature."""
        samples = super().make_samples(table, path, reading)
        feature = _features(path).get(samples.found["label"])
        name_classes(samples, feature.get("names") if isinstance(feature, dict) else None)
        return samples

    def dataset(self, rows: Ints, labels: Ints, class_names: Sequence[str]) -> Any:
        """These samples, with the features that they have."""
        self.check()
        return self._saved().select(self.rows[rows])

    def _saved(self) -> Any:
        _ = self._table  # checked from end to end
        with one_line.reading(self.path, self.noun):
            return import_datasets().load_from_disk(str(self.place))

    def write_rows(self, target: Path, edit: Edit) -> None:
        """Write the rows that stay, with the same features; nothing is cached beside the original."""
        dataset, label = self._saved(), str(self.label_column)
        if len(dataset) != len(edit.is_kept):
            raise InputError(f"{self.path} now has {len(dataset)} rows, the scan saw {len(edit.is_kept)}")
        if np.any(edit.label_from != np.arange(len(edit.label_from))):
            names, feature = dataset.column_names, dataset.features[label]
            labels = self._table[label].take(pa.array(edit.label_from)).to_pylist()
            dataset = dataset.remove_columns([label]).add_column(label, labels, feature=feature).select_columns(names)
        with making(target) as partial, no_progress_bars():
            dataset.select(np.flatnonzero(edit.is_kept)).save_to_disk(str(partial))


def name_classes(samples: Samples, names: Sequence[str] | None) -> None:
    """Replace class numbers by the names that a ClassLabel feature gives them."""
    if not names:
        return
    numbers = [int(name) for name in samples.class_names]
    if min(numbers) < 0:
        raise InputError("the labels hold negative numbers, which stand for no label; remove those samples")
    if max(numbers) >= len(names):
        raise InputError(f"the labels hold the number {max(numbers)}, but only {len(names)} classes have names")
    samples.class_names[:] = [str(names[number]) for number in numbers]


def _json(path: Path) -> Any:
    with one_line.reading(path, "JSON"):
        return json.loads(path.read_bytes())


def _split_names(path: Path) -> list[str]:
    listed = _json(path / DICT)
    names = listed.get("splits") if isinstance(listed, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(f"{path / DICT} does not list its splits; save the data set again")
    return names


def _arrow_files(path: Path) -> list[Path]:
    state = _json(path / STATE)
    listed = state.get("_data_files") if isinstance(state, dict) else None
    names = [one.get("filename") if isinstance(one, dict) else None for one in listed or []]
    files = [path / name for name in names if isinstance(name, str) and Path(name).name == name]
    if not files or len(files) < len(names):
        raise InputError(f"{path / STATE} does not list its Arrow files; save the data set again")
    return files


def _features(path: Path) -> dict[str, Any]:
    info = _json(path / INFO)
    features = info.get("features") if isinstance(info, dict) else None
    return features if isinstance(features, dict) else {}


def _checked_table(file: Path) -> pa.Table:
    """The rows of an Arrow file, read into memory and validated: no offset leads out of a buffer."""
    with pa.ipc.open_stream(pa.BufferReader(file.read_bytes())) as reader:
        table = reader.read_all()
    table.validate(full=True)  # before anything is done with it
    return table
