"""The result of one training: a score for every sample, and which samples were threshold samples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.storage.files import replacing

Scores = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one training. Only the scores are required; further fields fill columns of the verdicts.

    >>> run = Run(scores=[2.0, -1.0, 0.5], is_threshold=[False, True, False])
    >>> run.num_samples, run.has_threshold
    (3, True)
    """

    scores: Scores  # (samples,) low = suspicious; nan = never observed
    is_threshold: Mask = field(default_factory=lambda: np.zeros(0, bool))  # (samples,) empty: there were none
    labels: Labels | None = None  # (samples,) assigned labels of the data set
    ids: Sequence[Any] | None = None  # names of the samples outside the library, such as files; kept as text
    class_names: Sequence[str] | None = None
    suggested_labels: Labels | None = None  # (samples,) -1: no suggestion
    suggestion_confidence: Scores | None = None  # (samples,) share of the epochs
    probabilities: Scores | None = None  # (samples, classes) mean over the epochs; held-out for threshold samples
    fold: int = 0
    score: str = "aum"

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # a frozen record may still normalize its fields
        set_field(self, "scores", np.asarray(self.scores))
        mask = np.asarray(self.is_threshold)
        if mask.dtype != bool and len(mask):
            raise InputError(f"is_threshold holds {mask.dtype}, expected True or False per sample")
        set_field(self, "is_threshold", mask if len(mask) else np.zeros(self.num_samples, bool))
        for name in ("labels", "suggested_labels", "suggestion_confidence"):
            if getattr(self, name) is not None:
                values = np.asarray(getattr(self, name))
                # small integer types would overflow when class numbers are multiplied
                set_field(self, name, values.astype(np.int64, copy=False) if values.dtype.kind in "iu" else values)
        if self.probabilities is not None:
            set_field(self, "probabilities", np.asarray(self.probabilities))
        if self.ids is not None:
            set_field(self, "ids", [_text(one) for one in _in_order(self.ids)])
        if self.class_names is not None:
            set_field(self, "class_names", [str(name) for name in _by_number(self.class_names)])
        set_field(self, "fold", int(self.fold))
        self._check()

    def _check(self) -> None:
        if self.scores.ndim != 1 or self.scores.dtype.kind not in "fiu":
            raise InputError(
                f"scores have shape {self.scores.shape} and type {self.scores.dtype}, expected one number per sample"
            )
        for name in ("is_threshold", "labels", "ids", "suggested_labels", "suggestion_confidence", "probabilities"):
            values = getattr(self, name)
            if values is not None and len(values) != self.num_samples:
                raise InputError(f"{name} has {len(values)} entries, expected {self.num_samples}, one per score")
        if np.isinf(self.scores).any():
            raise InputError(f"{int(np.isinf(self.scores).sum())} scores are infinite, expected numbers or nan")
        if self.class_names is not None and len(set(self.class_names)) < len(self.class_names):
            twice = next(name for name in self.class_names if list(self.class_names).count(name) > 1)
            raise InputError(f"class_names holds {twice!r} more than once; class names must be unique")
        self._check_probabilities()
        self._check_classes("labels", lowest=0)
        self._check_classes("suggested_labels", lowest=-1)

    def _check_probabilities(self) -> None:
        values = self.probabilities
        if values is None:
            return
        if values.ndim != 2 or values.dtype.kind != "f" or values.shape[1] < 2:
            raise InputError(
                f"probabilities have shape {values.shape} and type {values.dtype}, expected (samples, classes)"
            )
        if self.labels is not None and len(self.labels) and self.labels.max() >= values.shape[1]:
            raise InputError(f"labels hold {self.labels.max()}, but probabilities have {values.shape[1]} classes")

    def _check_classes(self, name: str, lowest: int) -> None:
        values = getattr(self, name)
        if values is None or not len(values):
            return
        if values.dtype.kind not in "iu":
            raise InputError(f"{name} hold {values.dtype}, expected class numbers; names belong in class_names")
        if values.min() < lowest:
            raise InputError(f"{name} hold {values.min()}, expected {lowest} or more")
        if self.class_names is not None and values.max() >= len(self.class_names):
            raise InputError(f"{name} hold {values.max()}, but class_names has {len(self.class_names)} entries")

    @property
    def num_samples(self) -> int:
        """Number of samples in the data set."""
        return len(self.scores)

    @property
    def has_threshold(self) -> bool:
        """Whether some samples had the extra label."""
        return bool(self.is_threshold.any())

    @property
    def judged(self) -> Mask:
        """Samples judged by this run: observed, and not threshold samples: (samples,) bool."""
        return ~self.is_threshold & ~np.isnan(self.scores)

    def save(self, path: str | Path) -> None:
        """Write the run as Parquet: one row per sample, other fields in the metadata of the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, Any] = {"score": self.scores, "is_threshold": self.is_threshold}
        optional = {
            "label": self.labels,
            "suggested_label": self.suggested_labels,
            "suggestion_confidence": self.suggestion_confidence,
        }
        columns |= {name: values for name, values in optional.items() if values is not None}
        if self.ids is not None:
            columns["id"] = pa.array(self.ids, pa.string())
        if self.probabilities is not None:
            flat = pa.array(self.probabilities.astype(np.float32).ravel())
            columns["probabilities"] = pa.FixedSizeListArray.from_arrays(flat, self.probabilities.shape[1])
        metadata = {"fold": self.fold, "score": self.score, "class_names": self.class_names}
        table = pa.table(columns).replace_schema_metadata({"undermargin": json.dumps(metadata)})
        with replacing(path) as partial:
            pq.write_table(table, partial, compression="zstd", write_page_checksum=True)

    @classmethod
    def load(cls, path: str | Path) -> "Run":
        """Read what `save` wrote."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path, page_checksum_verification=True)
            metadata = json.loads((table.schema.metadata or {})[b"undermargin"])
            required = {"scores": table["score"].to_numpy(), "is_threshold": table["is_threshold"].to_numpy()}
            required |= {name: metadata[name] for name in ("fold", "score", "class_names")}
        except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
            raise InputError(f"{path} is not a run written by undermargin: {error}") from None
        columns = {name: table[name].to_numpy() for name in table.column_names if name not in ("id", "probabilities")}
        probabilities = None
        if "probabilities" in table.column_names:
            nested = table["probabilities"].combine_chunks()
            probabilities = nested.flatten().to_numpy().reshape(len(table), nested.type.list_size)
        return cls(
            **required,
            labels=columns.get("label"),
            ids=table["id"].to_pylist() if "id" in table.column_names else None,
            suggested_labels=columns.get("suggested_label"),
            suggestion_confidence=columns.get("suggestion_confidence"),
            probabilities=probabilities,
        )


def _by_number(names: Any) -> Sequence[Any]:
    """Class names in order; also accepts a mapping from class numbers, such as id2label of Hugging Face."""
    if not isinstance(names, Mapping):
        return list(names)
    if {str(number) for number in names} != {str(number) for number in range(len(names))}:
        raise InputError(f"class_names is a mapping from {', '.join(map(repr, names))}; expected 0..{len(names) - 1}")
    return [name for _, name in sorted(names.items(), key=lambda item: int(item[0]))]


def _in_order(ids: Any) -> list[Any]:
    """Ids by position: iterating a tensor or a pandas Series would not give plain values in order."""
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


def _text(one: Any) -> str:
    """An id as text that can be written; undecodable bytes of a file name are escaped."""
    return str(one).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
