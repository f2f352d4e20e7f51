"""The table of formats: find out what a source is by looking at it, load it, and open it again after the scan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undermargin.errors import InputError
from undermargin.plugins import Table
from undermargin.sources.arrays import Arrays
from undermargin.sources.base import Source
from undermargin.sources.class_folders import ClassFolders
from undermargin.sources.delimited import Csv, Tsv
from undermargin.sources.excel import Excel
from undermargin.sources.huggingface import HuggingFaceFolder
from undermargin.sources.in_memory import Memory, from_memory
from undermargin.sources.json_array import JsonArray
from undermargin.sources.json_lines import JsonLines
from undermargin.sources.parquet import Parquet
from undermargin.sources.samples import Kind, Reading, Samples

__all__ = ["FORMATS", "Format", "load", "reopen"]


@dataclass(frozen=True)
class Format:
    """One row of FORMATS. Its name stands in config["source"]["format"] of every scan of such data."""

    source: type[Source]
    description: str
    suffixes: tuple[str, ...] = ()  # of files; folders are recognized by `source.recognizes`


FORMATS: Table[Format] = Table(
    "undermargin.sources",
    Format,
    {
        "Dataset": Format(HuggingFaceFolder, "a Hugging Face folder (save_to_disk)"),
        "Parquet": Format(Parquet, "a Parquet file, or a folder of them", (".parquet",)),
        "class folders": Format(ClassFolders, "images in one folder per class"),
        "CSV": Format(Csv, "a CSV file with commas, semicolons or tabs", (".csv",)),
        "TSV": Format(Tsv, "a file of tab-separated values", (".tsv",)),
        "JSON lines": Format(JsonLines, "a file with one JSON object per line", (".jsonl", ".ndjson")),
        "JSON": Format(JsonArray, "a JSON file with an array of objects", (".json",)),
        "Excel": Format(Excel, "the first sheet of an Excel workbook", (".xlsx",)),
        "arrays": Format(Arrays, "NumPy arrays of images or embeddings, with labels", (".npz", ".npy")),
    },
)


def load(source: Any, reading: Reading | None = None) -> Samples:
    """Samples from a path, or from data in memory: (inputs, labels), a frame, a table, a data set."""
    reading = reading or Reading()
    if isinstance(source, Samples):
        return source
    if not isinstance(source, (str, Path)):
        return from_memory(source, reading)
    path = Path(source).absolute()  # a scan's folder remembers it, from wherever it is read
    if not path.exists():
        raise InputError(f"there is nothing at {path}; check the path")
    name = _recognized(path)
    samples = FORMATS[name].source.load(path, reading)
    samples.found["format"] = name
    return samples


def reopen(
    found: Mapping[str, Any],
    kind: Kind,
    ids: Sequence[str],
    *,
    fingerprint: str | None = None,
    samples: Samples | None = None,
) -> Source:
    """The source of a scan, to show, copy or rewrite its samples: from config["source"], the kind and the ids.

    With the scan's `fingerprint`, data that have changed since are refused. `samples` of a scan from memory can be
    shown as long as they are at hand.
    """
    _check_found(found)
    row = FORMATS.get(str(found.get("format")))
    if "path" not in found or row is None:
        return Memory(found, kind, ids, fingerprint=fingerprint, samples=samples)
    return row.source(found, kind, ids, fingerprint=fingerprint)


def _check_found(found: Mapping[str, Any]) -> None:
    """Refuse a config["source"] of another shape: the folder may come from someone else."""
    texts = ("path", "format", "label", "text", "image", "where", "split", "id")
    shapes: dict[str, Callable[[Any], bool]] = {name: lambda value: isinstance(value, str) for name in texts}
    shapes["image_size"] = lambda value: isinstance(value, int) and 0 < value < 10_000
    shapes["skipped_rows"] = lambda value: _is_list(value, int) and min(value, default=0) >= 0
    shapes["columns"] = lambda value: _is_list(value, str)
    shapes["files"] = shapes["image_files"] = lambda value: isinstance(value, dict) and _is_list([*value.values()], str)
    for name, is_right in shapes.items():
        value = found.get(name)
        if value is not None and not is_right(value):
            raise InputError(f"the scan's config.json is damaged: its source has {name} = {str(value)[:80]!r}")


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _recognized(path: Path) -> str:
    """The name of the format of what is at `path`."""
    if path.is_dir():
        is_known = (name for name, row in FORMATS.items() if row.source.recognizes(path))
        return next(is_known, "class folders")  # whose error says what is expected of a folder
    for name, row in FORMATS.items():
        if path.suffix.lower() in row.suffixes:
            return name
    known = [suffix for row in FORMATS.values() for suffix in row.suffixes]
    raise InputError(f"{path.name} ends in none of {', '.join(known)}, and is no folder of class folders")
