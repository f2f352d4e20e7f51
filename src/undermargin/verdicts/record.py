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
        if len(dataset) != len(self):
            raise InputError(f"the data set has {len(dataset)} samples, the verdicts are of {len(self)}")
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

    def summary(self) -> dict[str, Any]:
        """Counts, cutoffs, a row a class, the strongest confusions: plain data, ready for JSON."""
        return summarise(self)

    def __str__(self) -> str:
        counts = np.bincount(self.codes, minlength=len(NAMES))
        share = counts[FLAGGED] / max(len(self), 1)
        return f"{counts[FLAGGED]} of {len(self)} labels look wrong ({share:.1%}), {counts[UNJUDGED]} unjudged"

    def name(self, label: int) -> str:
        """What a class is called."""
        return self.class_names[label] if self.class_names is not None else str(label)

    def to_arrow(self) -> "pyarrow.Table":
        """One row a sample, most suspicious first."""
        from undermargin.verdicts.columns import to_arrow

        return to_arrow(self, self.order)

    def to_pandas(self) -> "pandas.DataFrame":
        """The same as a pandas frame."""
        _needs("pandas")
        return self.to_arrow().to_pandas()

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
