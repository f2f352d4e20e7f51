"""Images in a column of a table: bytes, {bytes, path} as Hugging Face stores them, or names of files."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources.evidence import digest, record
from undermargin.sources.labels import Labels
from undermargin.sources.pictures import LOOKED_AT, choose_size, shorter_side
from undermargin.sources.pixels import decode_all
from undermargin.sources.samples import Reading, Samples


def load_images(
    column: pa.ChunkedArray,
    labels: Labels,
    class_names: list[str],
    ids: list[str] | None,
    found: Mapping[str, Any],
    reading: Reading,
) -> Samples:
    """Decode all images; unreadable ones are left out, and `found` says which rows they were."""
    root = folder_of(found)
    total = len(column)
    if (size := reading.image_size) is None:
        some = [column[row].as_py() for row in range(0, total, max(1, total // LOOKED_AT))]
        size = choose_size([side for value in some if (side := shorter_side(_bytes_or_none(value, root)))])
    names = ids or [str(row) for row in range(total)]
    digests: dict[int, str] = {}
    reads = (
        (name, partial(_read, row, value, root, digests))
        for row, (name, value) in enumerate(zip(names, column, strict=True))
    )
    images, kept, skipped = decode_all(reads, total, size, reading)
    more: dict[str, Any] = {"image_size": size, "skipped_rows": sorted(set(range(total)) - set(kept))}
    if root is not None and all(row in digests for row in kept):
        files = [root / str(file_name(column[row].as_py())) for row in kept]
        more["image_files"] = record(files, [digests[row] for row in kept])
    kept_names = [names[row] for row in kept] if ids or skipped else None
    return Samples("images", images, labels[kept], class_names, kept_names, {**found, **more}, skipped)


def image_bytes(value: Any, root: Path | None) -> bytes:
    """An encoded image, from {bytes, path} as Hugging Face stores it, from bytes, or from a path below `root`."""
    name = file_name(value)
    if name is not None and root is not None:
        return _file_bytes(root, name)
    if isinstance(value, dict):
        value = value.get("bytes")
    return value if isinstance(value, bytes) else b""


def file_name(value: Any) -> str | None:
    """The file that a cell names, if it does not hold the image itself."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    return value if isinstance(value, str) else None


def folder_of(found: Mapping[str, Any]) -> Path | None:
    """The folder below which a table's files are; None for a table in memory."""
    if "path" not in found:
        return None
    path = Path(found["path"])
    return path if path.is_dir() else path.parent


def _file_bytes(root: Path, name: str) -> bytes:
    try:
        file = (root / name).resolve()
        if not file.is_relative_to(root.resolve()):
            raise InputError(f"the image {name} is not below {root}")
        if file.exists() and not file.is_file():  # reading a pipe would wait forever
            raise InputError(f"the image {name} is not a file")
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"the image {name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise error if isinstance(error, InputError) else InputError(f"{name!r} is not a file name") from None


def _read(row: int, value: pa.Scalar, root: Path | None, digests: dict[int, str]) -> bytes:
    plain = value.as_py()
    data = image_bytes(plain, root)
    if file_name(plain) is not None:
        digests[row] = digest(data)
    return data


def _bytes_or_none(value: Any, root: Path | None) -> bytes:
    try:
        return image_bytes(value, root)
    except InputError:
        return b""
