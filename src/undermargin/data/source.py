"""Find out what a source is by looking at it, and load it."""

from pathlib import Path
from typing import Any

import numpy as np

from undermargin.data.arrays import from_arrays, load_arrays
from undermargin.data.class_folders import is_class_folders, load_class_folders
from undermargin.data.rows import FORMATS, from_table, load_rows
from undermargin.data.samples import Samples
from undermargin.errors import InputError

ARRAYS = (".npz", ".npy")


def load(
    source: Any,
    *,
    label: str | None = None,
    text: str | None = None,
    image: str | None = None,
    where: str | None = None,
    image_size: int | None = None,
) -> Samples:
    """Samples from a path, or from what is in memory: (inputs, labels), a frame, a table, a data set."""
    columns = {"label": label, "text": text, "image": image, "where": where}
    if isinstance(source, Samples):
        return source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.exists():
            raise InputError(f"there is nothing at {path}")
        if path.is_dir():
            return _load_folder(path, columns, image_size)
        return _load_file(path, columns, image_size)
    return _from_memory(source, columns, image_size)


def _load_folder(path: Path, columns: dict[str, str | None], image_size: int | None) -> Samples:
    if (path / "dataset_info.json").is_file():
        import datasets

        return _from_memory(datasets.load_from_disk(str(path)), columns, image_size, {"path": str(path)})
    files = [file for file in path.iterdir() if file.suffix.lower() == ".parquet"]
    if files and not is_class_folders(path):
        if len(files) > 1:
            raise InputError(f"{path} holds {len(files)} Parquet files; name one of them")
        return _load_file(files[0], columns, image_size)
    return load_class_folders(path, image_size=image_size)


def _load_file(path: Path, columns: dict[str, str | None], image_size: int | None) -> Samples:
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        return load_rows(path, **columns, image_size=image_size)
    if suffix in ARRAYS:
        return load_arrays(path)
    raise InputError(f"{path.name} is none of {', '.join((*FORMATS, *ARRAYS))}, nor a folder of class folders")


def _from_memory(
    source: Any, columns: dict[str, str | None], image_size: int | None, found: dict[str, Any] | None = None
) -> Samples:
    import pyarrow as pa

    found = (found or {}) | {"format": type(source).__name__}
    if isinstance(source, tuple) and len(source) == 2:
        return from_arrays(*source, found)
    if isinstance(source, pa.Table):
        return from_table(source, found, **columns, image_size=image_size)
    if type(source).__module__.startswith("pandas"):
        return from_table(pa.Table.from_pandas(source, preserve_index=False), found, **columns, image_size=image_size)
    if type(source).__module__.startswith("datasets"):
        samples = from_table(source.with_format("arrow")[:], found, **columns, image_size=image_size)
        feature = source.features.get(samples.found["label"])
        names = getattr(feature, "names", None)  # a ClassLabel knows what its numbers are called
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
