"""A drop-in replacement for the authors' package `aum` 1.0.2: only the import changes.

    from undermargin.compat.aum import AUMCalculator, DatasetWithIndex

Names, signatures, return values and files are the same. Differences:

- Records are computed when they are first read.
- Tensors as sample ids and batches of one sample work; in the original they fail.
- Non-finite logits are ignored; in the original the AUM of such a sample stays nan.
- Logits in half precision are compared in single precision.
"""

import csv
import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Dataset

from undermargin.errors import InputError, UndermarginWarning
from undermargin.tracking.epoch import SPARE_ROWS, Epoch
from undermargin.tracking.observations import as_indices, as_labels, as_list, as_logits

SampleId = int | str
Number = TypeVar("Number", int, float)


@dataclass
class AUMRecord:
    """The measurements of one sample after one update."""

    sample_id: SampleId
    num_measurements: int
    target_logit: int
    target_val: float
    other_logit: int
    other_val: float
    margin: float
    aum: float


class DatasetWithIndex(Dataset[Any]):
    """Wraps a data set; appends the index to every sample."""

    def __init__(self, base_dataset: Any) -> None:
        self.base_dataset = base_dataset

    def __len__(self) -> int:
        return len(self.base_dataset)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return (*self.base_dataset[index], index)


class AUMCalculator:
    """Running AUM of every sample by id; ids need not be known in advance."""

    def __init__(self, save_dir: str | None, compressed: bool = True) -> None:  # noqa: FBT001, FBT002, RUF100 - theirs
        self.save_dir = save_dir
        self.compressed = compressed
        self._rows: dict[SampleId, int] = {}
        self._sums: Epoch | None = None
        self._history: list[_Records] = []
        self._latest: weakref.ref[_Records] | None = None
        self._read: tuple[_Totals[float], _Totals[int]] | None = None

    def update(self, logits: Tensor, targets: Tensor, sample_ids: Any) -> Mapping[SampleId, AUMRecord]:
        """Observe a batch; returns a mapping from sample id to record, computed on first access."""
        ids = as_list(sample_ids)
        logits = as_logits(logits)
        targets = as_labels(targets.view(-1) if isinstance(targets, Tensor) else targets, logits)
        if len(set(ids)) < len(ids):  # a sample that occurs twice in a batch counts as two consecutive measurements
            rows = range(len(ids))
            parts = [self.update(logits[row : row + 1], targets[row : row + 1], ids[row : row + 1]) for row in rows]
            return {sample: record for part in parts for sample, record in part.items()}
        self._freeze_latest()
        self._read = None
        sums = self._room_for(ids, logits)
        indices = as_indices([self._rows[sample] for sample in ids], logits)
        sums.update(logits, targets, indices)
        records = _Records(ids, logits.clone(), targets.clone(), indices, sums)
        self._latest = weakref.ref(records)
        if not self.compressed:
            records.look()  # the eight numbers of a record take less memory than the logits
            self._history.append(records)
        return records

    def finalize(self, save_dir: str | None = None) -> None:
        """Write aum_values.csv, highest AUM first, and full_aum_records.csv if not compressed."""
        if (save_dir or self.save_dir) is None:
            raise InputError("save_dir is None; pass a directory to AUMCalculator or to finalize")
        folder = Path(str(save_dir or self.save_dir))
        folder.mkdir(parents=True, exist_ok=True)
        self._report()
        measured = zip(self._rows, self._column(0), self._column(1), strict=True)
        aums = {sample: total / count for sample, total, count in measured if count}
        ranked = sorted(aums.items(), key=lambda row: -row[1])
        unmeasured = [(sample, "") for sample in self._rows if sample not in aums]
        _write(folder / "aum_values.csv", ["sample_id", "aum"], [*ranked, *unmeasured])
        if not self.compressed:
            records = sorted(self.records, key=_place)
            _write(
                folder / "full_aum_records.csv",
                [one.name for one in fields(AUMRecord)],
                map(astuple, records),
            )

    @staticmethod
    def records_to_df(records: list[AUMRecord]) -> Any:
        """Records as a pandas DataFrame, sorted by sample_id and num_measurements."""
        import pandas

        frame = pandas.DataFrame([asdict(record) for record in records])
        return frame.sort_values(by=["sample_id", "num_measurements"])

    @property
    def sums(self) -> dict[SampleId, float]:
        """Sum of the margins of every sample."""
        return self._totals()[0]

    @property
    def counts(self) -> dict[SampleId, int]:
        """Number of measurements of every sample."""
        return self._totals()[1]

    def _totals(self) -> "tuple[_Totals[float], _Totals[int]]":
        """Sums and counts, read from the device once after every update."""
        if self._read is None:
            counts = zip(self._rows, map(int, self._column(1)), strict=True)
            self._read = _Totals(zip(self._rows, self._column(0), strict=True)), _Totals(counts)
        return self._read

    @property
    def records(self) -> list[AUMRecord]:
        """All records of all updates; empty if compressed."""
        return [record for batch in self._history for record in batch.values()]

    def _report(self) -> None:
        """Warn about observations that were ignored; the original fails with an error from inside torch instead."""
        if self._sums is None:
            return
        self._sums.flush()
        counts = zip(SPARE_ROWS, self._sums.losses().int().tolist(), strict=True)
        lost = ", ".join(f"{reason}: {count}" for reason, count in counts if count)
        if lost:
            warnings.warn(f"some observations were ignored: {lost}", UndermarginWarning, stacklevel=3)

    def _column(self, column: int) -> list[float]:
        if self._sums is None:
            return []
        self._sums.flush()
        values: list[float] = self._sums.tensors["sums"][: len(self._rows), column].tolist()
        return values

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the weak reference, which cannot be pickled, and what can be recomputed."""
        self._freeze_latest()
        return self.__dict__ | {"_latest": None, "_read": None}

    def _freeze_latest(self) -> None:
        """Fix the values of the last update's records, if still referenced, before the sums change."""
        latest = self._latest() if self._latest is not None else None
        if latest is not None:
            latest.freeze()

    def _room_for(self, ids: list[SampleId], logits: Tensor) -> Epoch:
        """Assign rows to new ids; doubles the number of rows if necessary."""
        for sample in ids:
            self._rows.setdefault(sample, len(self._rows))
        if self._sums is None or len(self._rows) > self._sums.num_samples:
            grown = Epoch(
                max(1024, 2 * len(self._rows)), ["margin"], logits.shape[1], logits.device, dtype=torch.float64
            )
            if self._sums is not None:
                self._sums.flush()
                sums, count, spare = self._sums.tensors["sums"], self._sums.num_samples, len(SPARE_ROWS)
                grown.tensors["sums"][:count] = sums[:count]
                grown.tensors["sums"][-spare:] = sums[-spare:]  # ignored observations are still reported
            self._sums = grown
        if logits.shape[1] != self._sums.num_outputs:
            raise InputError(
                f"logits have {logits.shape[1]} classes, expected {self._sums.num_outputs} as in earlier updates"
            )
        return self._sums


class _Totals(dict[SampleId, Number]):
    """Read-only sums or counts after an update; 0 for unknown samples."""

    def __missing__(self, sample: SampleId) -> int:
        return 0

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("sums and counts are read-only; to start over, create another AUMCalculator")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> Any:
        """Copies and pickles are plain dicts."""
        return dict, (dict(self),)


class _Records(Mapping[SampleId, AUMRecord]):
    """The records of one update, computed on first access."""

    def __init__(self, ids: list[SampleId], logits: Tensor, targets: Tensor, indices: Tensor, sums: Epoch) -> None:
        self._ids = ids
        self._batch = (logits, targets, indices)
        self._sums: Epoch | None = sums
        self._totals = torch.empty(0)
        self._records: dict[SampleId, AUMRecord] | None = None

    def freeze(self) -> None:
        """Store the sums and counts after this update; everything else is constant."""
        if self._sums is not None:
            self._sums.flush()
            self._totals = self._sums.tensors["sums"][self._batch[2]]
            self._sums = None

    def look(self) -> dict[SampleId, AUMRecord]:
        """Compute the records and release the batch."""
        if self._records is None:
            self.freeze()
            logits, targets, _ = self._batch
            if logits.dtype in (torch.float16, torch.bfloat16):
                logits = logits.float()  # the same precision as the sums
            if len(targets) and not 0 <= targets.min() <= targets.max() < logits.shape[1]:
                found = (int(targets.min()), int(targets.max()), logits.shape[1] - 1)
                raise InputError("targets range from {} to {}, expected 0..{}: one logit per class".format(*found))
            column = targets[:, None]
            assigned = logits.gather(1, column)[:, 0]
            other = logits.scatter(1, column, -torch.inf).max(1)
            sums, counts = self._totals.unbind(1)
            columns = (
                counts.int(), targets, assigned, other.indices, other.values, assigned - other.values, sums / counts,
            )  # fmt: skip
            rows = zip(self._ids, *(values.tolist() for values in columns), strict=True)
            self._records = {row[0]: AUMRecord(*row) for row in rows}
            self._batch = (torch.empty(0), torch.empty(0), torch.empty(0))
        return self._records

    def __getitem__(self, sample: SampleId) -> AUMRecord:
        return self.look()[sample]

    def __iter__(self) -> Iterator[SampleId]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return repr(self.look())


def _place(record: AUMRecord) -> tuple[str, SampleId, int]:
    """Sort key of a record; the type comes first, because ids of different types cannot be compared."""
    return type(record.sample_id).__name__, record.sample_id, record.num_measurements


def _write(path: Path, header: list[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
