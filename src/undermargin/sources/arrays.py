"""Arrays of images or embeddings with labels: .npz, or a pair of .npy files."""

# ruff: noqa: ARG002 - one signature for all formats

import io
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources import one_line, splits
from undermargin.sources.array_samples import from_arrays
from undermargin.sources.base import Edit, Ints, Source
from undermargin.sources.datasets_library import image_dataset, vector_dataset
from undermargin.sources.evidence import changed, record
from undermargin.sources.numpy_files import check_member, read_npy, read_npz
from undermargin.sources.samples import Reading, Samples
from undermargin.storage.files import replacing

if TYPE_CHECKING:
    from PIL import Image

INPUT_NAMES = ("x", "images", "image", "data", "embeddings", "features", "inputs", "arr_0")
LABEL_NAMES = ("y", "labels", "label", "target", "targets", "arr_1")


class Arrays(Source):
    """An .npz with inputs and labels, or an .npy with its labels beside it (NAME_labels.npy)."""

    noun: ClassVar[str] = "arrays"

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Read inputs and labels; sizes are checked before anything is read."""
        splits.refuse(path, reading.split)
        with one_line.reading(path, "arrays"):
            inputs, labels, names = _read(path, reading)
        samples = from_arrays(inputs, labels, {"path": str(path)}, class_names=names)
        samples.found["files"] = record(_files(path))
        return samples

    @cached_property
    def _samples(self) -> Samples:
        return self.load(self.place, self.reading)

    def _check(self, *, is_thorough: bool) -> None:
        recorded = self.found.get("files")
        if recorded is not None and not changed(_files(self.place), recorded):
            return
        if self.fingerprint is not None:
            self.compare(lambda _: self._samples)
        elif recorded is not None:
            raise self.has_changed()

    def prepare(self) -> None:
        """Read the arrays."""
        self.check()
        _ = self._samples

    def array(self, index: int) -> npt.NDArray[Any]:
        """A sample: pixels (height, width[, 3]), or the numbers of an embedding."""
        self.check()
        if len(self._samples) != len(self.ids):
            raise self.has_changed(f"it now has {len(self._samples)} samples, the scan saw {len(self.ids)}")
        values = np.asarray(self._samples.inputs[index])
        return values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values

    def image(self, index: int, side: int) -> "Image.Image":
        """A sample's picture."""
        from PIL import Image

        if self.kind != "images":
            return super().image(index, side)
        return Image.fromarray(self.array(index))

    def dataset(self, rows: Ints, labels: Ints, class_names: Sequence[str]) -> Any:
        """These samples as a data set of the `datasets` library: pixels or embeddings, and labels."""
        values = [self.array(row) for row in rows.tolist()]
        if self.kind == "images":
            return image_dataset(values, labels, class_names)
        return vector_dataset([value.tolist() for value in values], labels, class_names)

    def targets(self, target: Path) -> list[Path]:
        """The file, and that of its labels if they are beside it."""
        return [target, labels_beside(target)] if self.place.suffix.lower() == ".npy" else [target]

    def rewrite(self, target: Path, edit: Edit, *, is_linked: bool = False) -> None:
        """Write the samples that stay. An array with as many rows as there are samples has one row per sample."""
        self.check(is_thorough=True)
        with one_line.rewriting(self.path):
            if self.place.suffix.lower() == ".npy":
                _write_pair(self.place, target, edit)
            else:
                _write_archive(self.place, target, edit, self.reading)


def labels_beside(path: Path) -> Path:
    """Where the labels of an .npy file are."""
    return path.with_name(f"{path.stem}_labels.npy")


def _files(path: Path) -> list[Path]:
    return [path, labels_beside(path)] if path.suffix.lower() == ".npy" else [path]


def _read(path: Path, reading: Reading) -> tuple[Any, Any, Any]:
    """Inputs, labels, and names of classes, if there are any."""
    if path.suffix.lower() == ".npy":
        if not labels_beside(path).is_file():
            raise InputError(f"{path} needs its labels beside it, in {labels_beside(path).name}")
        inputs, labels = (read_npy(file, reading) for file in _files(path))
        return inputs, labels, None
    arrays = read_npz(path, reading)
    inputs, labels = (_pick(arrays, names, path) for names in (INPUT_NAMES, LABEL_NAMES))
    return inputs(), labels(), arrays["classes"]() if "classes" in arrays else None


def _pick(arrays: Any, names: tuple[str, ...], path: Path) -> Any:
    for name in names:
        if name in arrays:
            return arrays[name]
    raise InputError(f"{path} has the arrays {', '.join(arrays)}; expected one of {', '.join(names)}")


def _write_pair(source: Path, target: Path, edit: Edit) -> None:
    labels = np.load(labels_beside(source), allow_pickle=False)
    inputs = np.load(source, allow_pickle=False, mmap_mode="r")
    with replacing(labels_beside(target)) as partial, partial.open("wb") as file:
        np.save(file, labels[edit.label_from][edit.is_kept])
    with replacing(target) as partial, partial.open("wb") as file:  # last: where it is, its labels are, too
        np.save(file, inputs[edit.is_kept])


def _write_archive(source: Path, target: Path, edit: Edit, reading: Reading) -> None:
    num_samples = len(edit.is_kept)
    with zipfile.ZipFile(source) as old, replacing(target) as partial, zipfile.ZipFile(partial, "w") as new:
        names = [Path(info.filename).stem for info in old.infolist()]
        label = next(name for name in LABEL_NAMES if name in names)
        for info, name in zip(old.infolist(), names, strict=True):
            check_member(old, info, reading)
            data = old.read(info)
            array = _array(data, name)
            if array.ndim and len(array) == num_samples:
                array = array[edit.label_from] if name == label else array
                data = _bytes(array[edit.is_kept])
            new.writestr(info.filename, data, compress_type=info.compress_type)


def _array(data: bytes, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
    except ValueError as error:
        raise InputError(
            f"the array {name} cannot be read ({error}); remove it from the file, Python objects are never run"
        ) from None


def _bytes(array: npt.NDArray[Any]) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=False)
    return data.getvalue()
