"""Data in memory: arrays, texts, frames, tables and data sets of other libraries."""

# ruff: noqa: ARG002, ARG003 - one signature for all formats

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.array_samples import from_arrays
from undermargin.sources.base import Source
from undermargin.sources.huggingface import name_classes
from undermargin.sources.one_line import reason
from undermargin.sources.rows import from_table
from undermargin.sources.samples import Columns, Kind, Reading, Samples

if TYPE_CHECKING:
    from PIL import Image


class Memory(Source):
    """Data that were scanned from memory. They can be shown as long as their `samples` are at hand."""

    noun: ClassVar[str] = "data in memory"

    def __init__(
        self,
        found: Mapping[str, Any],
        kind: Kind,
        ids: Sequence[str],
        *,
        fingerprint: str | None = None,
        samples: Samples | None = None,
    ) -> None:
        super().__init__(found, kind, ids, fingerprint=fingerprint)
        self.samples = samples

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Not possible from a path: see `from_memory`."""
        raise InputError(f"{path} is a path, not data in memory")

    @property
    def path(self) -> Path | None:
        """None, even if `found` says where the data were read before they were scanned."""
        return None

    @property
    def is_there(self) -> bool:
        """Whether samples can be shown."""
        return self.samples is not None

    def _check(self, *, is_thorough: bool) -> None:
        if self.samples is None:
            raise InputError("the data were scanned from memory, so there is nothing to show or to rewrite")

    def _inputs(self, kind: Kind) -> Any:
        self.check()
        if self.samples is None or self.kind != kind:
            raise InputError(f"samples of kind {self.kind} cannot be shown as {kind}")
        return self.samples.inputs

    def image(self, index: int, side: int) -> "Image.Image":
        """A sample's picture."""
        from PIL import Image

        pixels = np.asarray(self._inputs("images")[index])
        return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)

    def text(self, index: int) -> str:
        """A sample's text."""
        return str(self._inputs("text")[index])

    def row(self, index: int) -> dict[str, Any]:
        """The features of a table's sample."""
        columns: Columns = self._inputs("table")
        return columns.row(index)


def from_memory(source: Any, reading: Reading) -> Samples:
    """Samples of (inputs, labels), a frame, a table or a data set."""
    found = {"format": type(source).__name__}
    library = type(source).__module__.partition(".")[0]
    if library == "datasets":
        return _from_datasets(source, reading, found)
    splits.refuse(f"a {type(source).__name__}", reading.split)
    if isinstance(source, tuple) and len(source) == 2:
        return from_arrays(*source, found)
    if isinstance(source, pa.Table):
        return from_table(source, reading, found)
    if library == "pandas":
        table = _arrow(lambda: pa.Table.from_pandas(source, preserve_index=False), source)
        return from_table(table, reading, found, ids=_index_ids(source.index))
    if library == "polars" and hasattr(source, "lazy"):
        return from_table(_arrow(lambda: source.lazy().collect().to_arrow(), source), reading, found)
    if hasattr(source, "__arrow_c_stream__"):  # DuckDB and others
        return from_table(_arrow(lambda: pa.table(source), source), reading, found)
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return _from_pairs(source, found)
    raise InputError(
        f"a {type(source).__name__} cannot be scanned; pass a path, (inputs, labels), a frame or a data set"
    )


def _arrow(convert: Callable[[], pa.Table], source: Any) -> pa.Table:
    try:
        return convert()
    except Exception as error:  # columns of mixed types, names that occur twice
        raise InputError(f"the {type(source).__name__} cannot be read as a table: {reason(error)}") from None


def _index_ids(index: Any) -> list[str] | None:
    """The index of a pandas frame as ids, if it was set on purpose: it is unique, and not 0, 1, 2, ..."""
    is_default = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if is_default or not index.is_unique:
        return None
    return ["/".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in index.tolist()]


def _from_datasets(source: Any, reading: Reading, found: dict[str, Any]) -> Samples:
    """Samples of a data set of the `datasets` library, or of one split of several."""
    if isinstance(source, dict):
        source = source[splits.choose("the data set", list(source), reading.split)]
        found["format"] = type(source).__name__
    if not hasattr(source, "__len__"):
        raise InputError(f"a {type(source).__name__} has no length; load the data set without streaming")
    samples = from_table(source.with_format("arrow")[:], reading, found)
    name_classes(samples, getattr(source.features.get(samples.found["label"]), "names", None))
    return samples


def _from_pairs(source: Any, found: dict[str, Any]) -> Samples:
    """Samples of a map-style data set, as torch has them: (input, label), one after the other."""
    pairs = [source[index] for index in range(len(source))]
    odd = next((pair for pair in pairs if not isinstance(pair, (tuple, list)) or len(pair) < 2), None)
    if odd is not None:
        raise InputError(
            f"the samples of a {type(source).__name__} are {type(odd).__name__}, expected (input, label); pass "
            "(inputs, labels) instead"
        )
    inputs: Any = [pair[0] for pair in pairs]
    if not all(isinstance(one, str) for one in inputs):
        arrays = [np.asarray(one) for one in inputs]
        shapes = {array.shape for array in arrays}
        if len(shapes) > 1:
            raise InputError(f"the inputs have different shapes, such as {sorted(shapes)[:2]}; expected one for all")
        inputs = np.stack(arrays)
    return from_arrays(inputs, [_label(pair[1]) for pair in pairs], found)


def _label(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)
