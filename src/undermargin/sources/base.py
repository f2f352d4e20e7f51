"""What every format can do: load, show one sample, rewrite the cleaned data, and tell whether they have changed."""

# ruff: noqa: ARG002, ARG003 - one signature for all formats

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.pictures import as_jpeg
from undermargin.sources.samples import Kind, Reading, Samples

if TYPE_CHECKING:
    import pyarrow as pa
    from PIL import Image

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edit:
    """What cleaning does: some samples (or rows) go, some take the label of another one."""

    is_kept: npt.NDArray[np.bool_]  # (samples,)
    label_from: Ints  # (samples,) whose label it takes: its own, or that of a sample that has the new label

    def of_rows(self, rows: Ints, num_rows: int) -> "Edit":
        """The same for all rows of a table, where `rows` are the samples' own; the other rows stay."""
        is_kept, label_from = np.ones(num_rows, bool), np.arange(num_rows)
        is_kept[rows] = self.is_kept
        label_from[rows] = rows[self.label_from]
        return Edit(is_kept, label_from)


class Source(ABC):
    """A scanned data set, read again from where it is. Nothing is read before it is asked for.

    `found` is config["source"], as `load` left it in `Samples.found`; `ids` are in the order of the data set. Every
    method that shows or rewrites samples first makes sure that the data are those with this `fingerprint`.
    """

    noun: ClassVar[str]  # what messages call the format
    has_rows: ClassVar[bool] = False  # a sample is a row with named columns
    has_files: ClassVar[bool] = False  # a sample is a file of its own

    def __init__(
        self, found: Mapping[str, Any], kind: Kind, ids: Sequence[str], *, fingerprint: str | None = None
    ) -> None:
        self.found, self.kind, self.ids, self.fingerprint = found, kind, ids, fingerprint
        self.reading = Reading.of(found)
        self._checked = 0  # 1: what is shown may be trusted; 2: every file of a sample, too

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a folder is of this format; files are recognized by their suffixes."""
        return False

    @classmethod
    @abstractmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """The samples at `path`. `found` gets "path", "files" (see `evidence`) and what `reading` left to a guess."""

    @property
    def path(self) -> Path | None:
        """Where the data are; None if they were scanned from memory."""
        return Path(self.found["path"]) if "path" in self.found else None

    @property
    def place(self) -> Path:
        """The path of data that are on disk."""
        if self.path is None:
            raise InputError("the data were scanned from memory, so there is no file to read")
        return self.path

    @property
    def is_there(self) -> bool:
        """Whether samples can be shown."""
        return self.path is not None and self.path.exists()

    @property
    def label_column(self) -> str | None:
        """The column of labels, where there are columns."""
        return self.found.get("label")

    def check(self, *, is_thorough: bool = False) -> None:
        """Raise InputError if the data are no longer what was scanned.

        Samples that are files of their own are compared when they are read; with `is_thorough`, all at once.
        """
        wanted = 2 if is_thorough else 1
        if self._checked < wanted:
            self._check(is_thorough=is_thorough)
            self._checked = wanted

    def prepare(self) -> None:
        """Read what is needed to show samples, once, before several threads ask for them."""
        self.check()

    @abstractmethod
    def _check(self, *, is_thorough: bool) -> None:
        """Raise `has_changed` if so."""

    def has_changed(self, detail: str = "") -> InputError:
        """The error for data that are no longer what was scanned."""
        because = f": {detail}" if detail else ""
        return InputError(
            f"{self.path} has changed since the scan{because}; scan it again, or restore the data that were scanned"
        )

    def compare(self, make: Callable[[Reading], Samples]) -> None:
        """Raise `has_changed` unless these samples, loaded anew, have the fingerprint of the scan."""
        with TemporaryDirectory() as folder:
            try:
                samples = make(replace(self.reading, spill=Path(folder) / "pixels.bin"))
            except InputError as error:
                raise self.has_changed(str(error)) from None
            is_same = samples.fingerprint() == self.fingerprint
            del samples  # closes the file before the folder goes
        if not is_same:
            raise self.has_changed()

    def image(self, index: int, side: int) -> "Image.Image":
        """A sample's picture, at least `side` pixels large if it has that many."""
        raise InputError(f"samples of kind {self.kind} have no pictures")

    def picture(self, index: int, side: int) -> bytes:
        """A sample's picture as JPEG, at most `side` pixels per side, encoded anew: never the file's own bytes."""
        return as_jpeg(self.image(index, side), side)

    def text(self, index: int) -> str:
        """A sample's text."""
        raise InputError(f"samples of kind {self.kind} have no text")

    def row(self, index: int) -> dict[str, Any]:
        """A sample's row as it is: the value of every column, the label included."""
        raise InputError(f"{self.path} has no rows: it is {self.noun}")

    def cells(self, index: int) -> dict[str, Any]:
        """A sample's row without the label, the text and the image, which are shown by themselves."""
        hidden = {self.found.get(name) for name in ("label", "text", "image")}
        return {name: value for name, value in self.row(index).items() if name not in hidden}

    def column(self, name: str) -> "pa.ChunkedArray":
        """The values of a column, one per sample."""
        raise InputError(f"{self.path} has no column {name!r}: it is {self.noun}")

    def file(self, index: int) -> Path:
        """The file that a sample is."""
        raise InputError(f"the samples of {self.path} are not files of their own: it is {self.noun}")

    def dataset(self, rows: Ints, labels: Ints, class_names: Sequence[str]) -> Any:
        """These samples as a data set of the `datasets` library; columns stay as they are."""
        raise InputError("the data were scanned from memory or are gone; their samples cannot be copied")

    def targets(self, target: Path) -> list[Path]:
        """The paths that `rewrite` makes."""
        return [target]

    def renamed(self, edit: Edit) -> Mapping[str, str]:
        """New ids of the samples that stay, by their old ids, where ids are names of files."""
        return {}

    def rewrite(self, target: Path, edit: Edit, *, is_linked: bool = False) -> None:
        """Write the data without the samples that go and with the new labels; `is_linked`: link files, do not copy."""
        raise InputError(f"{self.noun} cannot be rewritten; write a list of what stays with --indices")
