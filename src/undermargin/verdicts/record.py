"""The method's answer for every sample: flagged, kept or unjudged; its file, and its use on a data set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.verdicts.summary import summarise

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

FLAGGED, KEPT, UNJUDGED = 0, 1, 2
NAMES = ("flagged", "kept", "unjudged")

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """One verdict a sample. Arrays are in the data set's order; `order` goes from most to least suspicious."""

    codes: npt.NDArray[np.int8]  # (samples,) positions in NAMES
    scores: Floats  # (samples,) mean over the runs that judged the sample
    excess: Floats  # (samples,) mean of score minus cutoff; of `probability`, the log odds that the label is right
    judged_by: npt.NDArray[np.int16]  # (samples,) number of those runs
    fold_scores: Sequence[Floats] = ()  # (samples,) for each run; nan where it did not judge
    labels: Ints | None = None
    ids: Sequence[Any] | None = None
    class_names: Sequence[str] | None = None
    suggested_labels: Ints | None = None  # (samples,) the strongest rival where flagged, else the label; -1: none
    suggestion_confidence: Floats | None = None
    probabilities: Floats | None = None  # (samples,) P(mislabeled); nan: unjudged
    alternatives: Ints | None = None  # (samples, up to 3) other classes, most likely first; -1: none
    alternative_shares: Floats | None = None  # (samples, up to 3) their probabilities
    about: dict[str, Any] = field(default_factory=dict)  # score, cutoff, estimate and notes, for the summary

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> str:
        return NAMES[self.codes[index]]

    @property
    def is_flagged(self) -> npt.NDArray[np.bool_]:
        """(samples,) bool."""
        return np.asarray(self.codes == FLAGGED)

    @property
    def is_kept(self) -> npt.NDArray[np.bool_]:
        """(samples,) bool."""
        return np.asarray(self.codes == KEPT)

    @property
    def flagged(self) -> Ints:
        """Indices of the flagged samples, most suspicious first."""
        return self.order[: int(self.is_flagged.sum())]

    @property
    def kept(self) -> Ints:
        """Indices of the kept samples, in the data set's order."""
        return np.flatnonzero(self.is_kept)

    @property
    def unjudged(self) -> Ints:
        """Indices of the unjudged samples, in the data set's order."""
        return np.flatnonzero(self.codes == UNJUDGED)

    @cached_property
    def order(self) -> Ints:
        """All indices: flagged, then kept, then unjudged, each from most to least suspicious."""
        return np.lexsort((self.excess, self.codes))

    def clean(self, dataset: Any) -> Any:
        """The data set without its flagged samples."""
        return self._rows_of(dataset, np.flatnonzero(~self.is_flagged))

    def subset(self, dataset: Any, verdict: str = "flagged") -> Any:
        """The samples of a data set that have this verdict, in the data set's order."""
        if verdict not in NAMES:
            raise InputError(f"there is no verdict {verdict!r}; choose from {', '.join(NAMES)}")
        return self._rows_of(dataset, np.flatnonzero(self.codes == NAMES.index(verdict)))

    def _rows_of(self, dataset: Any, rows: Ints) -> Any:
        """A Hugging Face data set's `select`, rows of a frame, a table or an array, else a torch Subset."""
        self._check_length(dataset)
        library = type(dataset).__module__.split(".")[0]
        if library == "datasets" and hasattr(dataset, "select"):  # not a package of the user's own called so
            return dataset.select(rows)
        if library == "pandas":
            return dataset.iloc[rows]
        if library in ("numpy", "polars"):
            return dataset[rows]
        if library == "pyarrow":
            return dataset.take(rows)
        from torch.utils.data import Subset

        return Subset(dataset, rows.tolist())

    def _check_length(self, dataset: Any) -> None:
        if len(dataset) != len(self):
            raise InputError(f"the data set has {len(dataset)} samples, the verdicts are of {len(self)}")

    def summary(self) -> dict[str, Any]:
        """Counts, cutoffs, a row a class, the strongest confusions: plain data, ready for JSON."""
        return summarise(self)

    def __str__(self) -> str:
        counts = np.bincount(self.codes, minlength=len(NAMES))
        share = counts[FLAGGED] / max(len(self), 1)
        return f"{counts[FLAGGED]} of {len(self)} labels look wrong ({share:.1%}), {counts[UNJUDGED]} unjudged"

    @cached_property
    def classes(self) -> list[str]:
        """Names of all classes; where they have none, their numbers."""
        if self.class_names is not None:
            return [str(name) for name in self.class_names]
        known = [values.max(initial=-1) for values in (self.labels, self.suggested_labels) if values is not None]
        return [str(number) for number in range(int(max(known, default=-1)) + 1)]

    def id(self, index: int) -> str:
        """What the outside world calls a sample: its id, or its index where it has none."""
        return str(index if self.ids is None else self.ids[index])

    def label(self, index: int) -> str | None:
        """The name of a sample's label; None without labels."""
        return None if self.labels is None else self.name(int(self.labels[index]))

    def suggestion(self, index: int) -> str | None:
        """The name of a better label for a sample; None where there is none to suggest."""
        if self.suggested_labels is None or self.suggested_labels[index] < 0:
            return None
        name = self.name(int(self.suggested_labels[index]))
        return None if name == self.label(index) else name

    def top(self, number: int = 20, source: Any = None) -> "pandas.DataFrame":
        """The most suspicious samples as a pandas frame; with the data as `source`, each with its input."""
        _needs("pandas")
        rows = self.order[:number]
        frame = self.to_arrow().slice(0, number).to_pandas()
        if source is not None:
            self._check_length(source)
            frame["sample"] = [source.iloc[row] if hasattr(source, "iloc") else source[row] for row in rows.tolist()]
        return frame

    def plot(self, axes: Any = None) -> Any:
        """Draw the scores of flagged and kept samples with matplotlib; returns the axes."""
        from undermargin.verdicts.display import plot

        return plot(self, axes)

    def _repr_html_(self) -> str:
        from undermargin.verdicts.display import to_html

        return to_html(self)

    def name(self, label: int) -> str:
        """What a class is called."""
        return self.class_names[label] if self.class_names is not None else str(label)

    def to_arrow(self) -> "pyarrow.Table":
        """One row a sample, most suspicious first."""
        from undermargin.verdicts.columns import to_arrow

        return to_arrow(self, self.order)

    def to_pandas(self, source: "pandas.DataFrame | None" = None) -> "pandas.DataFrame":
        """One row per sample, most suspicious first; with the scanned frame as `source`, its columns beside ours."""
        _needs("pandas")
        frame = self.to_arrow().to_pandas()
        if source is None:
            return frame
        self._check_length(source)
        own = source.iloc[self.order].reset_index(drop=True)
        return frame.join(own.rename(columns={name: f"source_{name}" for name in own.columns if name in frame.columns}))

    def to_polars(self) -> "polars.DataFrame":
        """The same as a polars frame."""
        _needs("polars")
        import polars

        return polars.from_arrow(self.to_arrow())

    def save(self, path: str | Path) -> None:
        """Write .parquet (everything) or .csv (the rows); the file appears whole or not at all."""
        from undermargin.verdicts.columns import write

        write(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Verdicts":
        """Read what `save` wrote."""
        from undermargin.verdicts.columns import read

        return read(Path(path))


def _needs(library: str) -> None:
    """Say how to get an optional package before it is missed."""
    if find_spec(library) is None:
        raise InputError(f"{library} is not installed: pip install 'undermargin[{library}]'")
