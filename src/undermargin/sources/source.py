"""Find out what a source is by looking at it, and load it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.arrays import from_arrays, load_arrays
from undermargin.sources.class_folders import is_class_folders, load_class_folders
from undermargin.sources.rows import FORMATS, from_table, load_rows
from undermargin.sources.samples import Reading, Samples

ARRAYS = (".npz", ".npy")


def load(source: Any, reading: Reading | None = None) -> Samples:
    """Samples from a path, or from what is in memory: (inputs, labels), a frame, a table, a data set."""
    reading = reading or Reading()
    if isinstance(source, Samples):
        return source
    if isinstance(source, (str, Path)):
        path = Path(source).absolute()  # a scan's folder remembers it, wherever it is read from
        if not path.exists():
            raise InputError(f"there is nothing at {path}")
        if path.is_dir():
            return _load_folder(path, reading)
        return _load_file(path, reading)
    return _from_memory(source, reading)


def _load_folder(path: Path, reading: Reading) -> Samples:
    if (path / "dataset_dict.json").is_file():
        path = _only_split(path)
    if (path / "dataset_info.json").is_file():
        import datasets

        return _from_memory(datasets.load_from_disk(str(path)), reading, {"path": str(path)})
    files = [file for file in path.iterdir() if file.suffix.lower() == ".parquet"]
    if files and not is_class_folders(path):
        if len(files) > 1:
            raise InputError(f"{path} holds {len(files)} Parquet files; name one of them")
        return _load_file(files[0], reading)
    return load_class_folders(path, reading)


def _only_split(path: Path) -> Path:
    """Of a Hugging Face folder of several data sets, the one there is."""
    try:
        splits = [str(name) for name in json.loads((path / "dataset_dict.json").read_text())["splits"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path / 'dataset_dict.json'} does not list its splits: {error}") from None
    if len(splits) != 1:
        raise InputError(_choose_split(str(path), splits, f"{path}/{splits[0]}" if splits else str(path)))
    return path / splits[0]


def _choose_split(what: str, splits: list[str], example: str) -> str:
    return f"{what} holds {len(splits)} splits: {', '.join(splits)}; name one of them, such as {example}"


def _load_file(path: Path, reading: Reading) -> Samples:
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        return load_rows(path, reading)
    if suffix in ARRAYS:
        return load_arrays(path)
    raise InputError(f"{path.name} is none of {', '.join((*FORMATS, *ARRAYS))}, nor a folder of class folders")


def _from_memory(source: Any, reading: Reading, found: dict[str, Any] | None = None) -> Samples:
    import pyarrow as pa

    found = (found or {}) | {"format": type(source).__name__}
    if isinstance(source, tuple) and len(source) == 2:
        return from_arrays(*source, found)
    if isinstance(source, pa.Table):
        return from_table(source, reading, found)
    if type(source).__module__.startswith("pandas"):
        return from_table(pa.Table.from_pandas(source, preserve_index=False), reading, found)
    if type(source).__module__.startswith("datasets") and isinstance(source, dict):
        raise InputError(_choose_split("the data set", list(source), f"dataset[{next(iter(source), '')!r}]"))
    if type(source).__module__.startswith("datasets"):
        samples = from_table(source.with_format("arrow")[:], reading, found)
        feature = source.features.get(samples.found["label"])
        names = getattr(feature, "names", None)  # a ClassLabel knows what its numbers are called
        if names and any(name.startswith("-") for name in samples.class_names):
            raise InputError("the labels hold negative numbers, which stand for no label; take those samples out")
        if names:
            samples.class_names[:] = [names[int(name)] for name in samples.class_names]
        return samples
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        pairs = [source[index] for index in range(len(source))]
        inputs = np.stack([np.asarray(pair[0]) for pair in pairs])
        return from_arrays(inputs, [int(pair[1]) for pair in pairs], found)
    raise InputError(
        f"a {type(source).__name__} cannot be scanned; give a path, (inputs, labels), a frame or a data set"
    )
