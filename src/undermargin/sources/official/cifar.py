"""CIFAR-10 and CIFAR-100: the Python and the binary version, packed or unpacked, and CIFAR-10 as Parquet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from undermargin.errors import InputError
from undermargin.sources.image_columns import image_bytes
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import read_members
from undermargin.sources.official.checksums import check_md5
from undermargin.sources.official.record import OfficialSet, Request, decoded, first_there, whole_numbers
from undermargin.sources.official.unpickling import entry, unpickled
from undermargin.sources.parquet import Parquet
from undermargin.sources.pixels import Bytes

SIDE, PIXELS = 32, 3072  # bytes per image
CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
CIFAR10 = {
    "python": {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]},
    "binary": {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]},
}
CIFAR100 = {
    "python": {"train": ["train"], "test": ["test"]},
    "binary": {"train": ["train.bin"], "test": ["test.bin"]},
}
MD5 = {
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    "cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
    "cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8",
    "data_batch_1": "c99cafc1",
    "data_batch_2": "d4bba439",
    "data_batch_3": "54ebc095",
    "data_batch_4": "634d1841",
    "data_batch_5": "482c414d",
    "test_batch": "40351d58",
    "train": "16019d7e",
    "test": "f0ef6b0a",
}


def locate_cifar10(root: Path) -> Path | None:
    """The folder, the tar file or the Parquet file of the training set; the Python version before the others."""
    places = ["cifar-10-batches-py", "cifar-10-python.tar.gz", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"]
    return first_there(root, [*places, "cifar10_train.parquet"])


def locate_cifar100(root: Path) -> Path | None:
    """The folder or the tar file; the Python version before the binary one."""
    places = ["cifar-100-python", "cifar-100-python.tar.gz", "cifar-100-binary", "cifar-100-binary.tar.gz"]
    return first_there(root, places)


def load_cifar10(path: Path, request: Request) -> OfficialSet:
    """Photos (samples, 32, 32, 3) of ten classes."""
    if path.suffix == ".parquet":
        return _load_parquet(path.with_name(f"cifar10_{request.split}.parquet"))
    version = _version(path)
    images: list[Bytes] = []
    labels: list[Labels] = []
    for name, data in _members(path, CIFAR10[version][request.split], request).items():
        if version == "binary":
            records = _records(data, 1, path / name)
            labels.append(records[:, 0].astype(np.int64))
        else:
            records, numbers = _batch(unpickled(data, path / name), "labels", path / name)
            labels.append(numbers)
        images.append(_images(records))
    found = {"path": str(path), "format": f"CIFAR {version}"}
    return OfficialSet(np.concatenate(images), np.concatenate(labels), list(CIFAR10_NAMES), found=found)


def load_cifar100(path: Path, request: Request) -> OfficialSet:
    """Photos (samples, 32, 32, 3) of a hundred fine or twenty coarse classes."""
    version, column = _version(path), request.column
    name = CIFAR100[version][request.split][0]
    meta = "meta" if version == "python" else f"{column}_label_names.txt"
    files = _members(path, [name, meta], request)
    if version == "binary":
        records = _records(files[name], 2, path / name)
        labels = records[:, ("coarse", "fine").index(str(column))].astype(np.int64)
        names = files[meta].decode().split()
    else:
        records, labels = _batch(unpickled(files[name], path / name), f"{column}_labels", path / name)
        names = [str(word) for word in entry(unpickled(files[meta], path / meta), f"{column}_label_names", path / meta)]
    found = {"path": str(path), "format": f"CIFAR {version}"}
    return OfficialSet(_images(records), labels, names, found=found)


def _version(path: Path) -> str:
    return "binary" if "bin" in path.name else "python"


def _members(path: Path, names: Sequence[str], request: Request) -> dict[str, bytes]:
    files = read_members(path, names)
    if request.check:
        for file in [path / name for name in names] if path.is_dir() else [path]:
            if file.name in MD5:
                check_md5(file, [MD5[file.name]])
    return files


def _batch(batch: dict[str, Any], column: str, path: Path) -> tuple[Bytes, Labels]:
    data, labels = entry(batch, "data", path), whole_numbers(entry(batch, column, path), column, path)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(labels), PIXELS):
        shape = getattr(data, "shape", type(data).__name__)
        raise InputError(
            f"{path} has data of shape {shape} for {len(labels)} labels, expected bytes (labels, {PIXELS})"
        )
    return data, labels


def _records(data: bytes, num_labels: int, path: Path) -> Bytes:
    size = num_labels + PIXELS
    if not data or len(data) % size:
        raise InputError(f"{path} has {len(data):,} bytes, expected a multiple of {size}; was it cut off?")
    return np.frombuffer(data, np.uint8).reshape(-1, size)


def _images(records: Bytes) -> Bytes:
    """(samples, ... + 3 planes of 32 x 32) -> (samples, 32, 32, 3)."""
    planes = records[:, -PIXELS:].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


@dataclass(frozen=True)
class Column:
    """Images in a column of a table, stored as by Hugging Face, as `Files`."""

    values: pa.ChunkedArray

    @property
    def ids(self) -> Sequence[str]:
        """The numbers of the rows."""
        return [str(row) for row in range(len(self.values))]

    def read(self, index: int) -> bytes:
        """The file of one image."""
        return image_bytes(self.values[index].as_py(), None)


def _load_parquet(path: Path) -> OfficialSet:
    if not path.is_file():
        raise InputError(f"there is no {path}; put it beside the other split")
    table = Parquet.readable(path)
    absent = {"image", "label"} - set(table.column_names)
    if absent:
        raise InputError(
            f"{path} lacks the column {' and '.join(sorted(absent))}; it has {', '.join(table.column_names)}"
        )
    images = decoded(Column(table["image"].combine_chunks()), SIDE)
    labels = whole_numbers(table["label"].to_pylist(), "label", path)
    return OfficialSet(images, labels, list(CIFAR10_NAMES), found={"path": str(path), "format": "Parquet"})


def count_cifar10(path: Path) -> dict[str, int]:
    """Samples per split if they are in Parquet files; otherwise they are not counted."""
    if path.suffix != ".parquet":
        return {}
    paths = {split: path.with_name(f"cifar10_{split}.parquet") for split in ("train", "test")}
    return {split: pq.read_metadata(file).num_rows for split, file in paths.items() if file.is_file()}
