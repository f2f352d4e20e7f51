"""The flagged share per class or per value of a column, with an interval so that small groups do not mislead."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from undermargin.errors import InputError
from undermargin.scans.intervals import wilson
from undermargin.verdicts.record import Verdicts

Codes = npt.NDArray[np.int64]

MAX_VALUES = 30  # of a column of texts; rarer values are counted together
MAX_NUMBERS = 12  # distinct numbers that are listed one by one; more are cut into ranges
NUM_RANGES = 6


def by_label(verdicts: Verdicts) -> dict[str, Any]:
    """One row per class that occurs."""
    assert verdicts.labels is not None  # noqa: S101 - for the type checker
    names = [verdicts.name(label) for label in range(int(verdicts.labels.max()) + 1)]
    return {"by": None, "rows": _rows(verdicts, verdicts.labels, names)}


def by_column(verdicts: Verdicts, name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    """One row per value: texts as they are, many numbers or dates in ranges of about the same number of samples."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError(f"column {name!r} holds {column.type}; expected texts, numbers or dates to group by")
    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if (is_number or is_date) and pc.count_distinct(column).as_py() > MAX_NUMBERS:
        codes, names = _ranges(column, is_date=is_date)
    else:
        codes, names = _values(column)
    return {"by": name, "rows": _rows(verdicts, codes, names)}


def _values(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """The most frequent values, the others together, and missing ones."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    frequent = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable")[:MAX_VALUES]
    place = np.full(len(names) + 1, len(frequent))  # the spare last one is for what is missing: code -1
    place[frequent] = np.arange(len(frequent))
    place[-1] = len(frequent) + 1
    others = f"{len(names) - len(frequent)} other values"
    return place[codes], [*(names[code] for code in frequent), others, "(missing)"]


def _ranges(column: pa.ChunkedArray, *, is_date: bool) -> tuple[Codes, list[str]]:
    """Ranges between quantiles."""
    if is_date:
        column = column.cast(pa.timestamp("s")).cast(pa.int64())
    values = column.cast(pa.float64(), safe=False).to_numpy()
    is_missing = np.isnan(values)
    known = values[~is_missing]
    cuts = np.unique(np.quantile(known, np.arange(1, NUM_RANGES) / NUM_RANGES, method="inverted_cdf"))
    codes = np.where(is_missing, len(cuts) + 1, np.searchsorted(cuts, values))
    spans = [known[codes[~is_missing] == code] for code in range(len(cuts) + 1)]
    names = [f"{_text(span.min(), is_date)} to {_text(span.max(), is_date)}" if len(span) else "" for span in spans]
    return codes, [*names, "(missing)"]


def _text(value: float, is_date: bool) -> str:
    return str(np.datetime64(int(value), "s").astype("datetime64[D]")) if is_date else f"{value:,.6g}"


def _rows(verdicts: Verdicts, codes: Codes, names: list[str]) -> list[dict[str, Any]]:
    """One row per group that has samples, ordered by the lower end of the interval: those surely high come first."""
    counts = np.bincount(codes, minlength=len(names))
    flagged = np.bincount(codes[verdicts.is_flagged], minlength=len(names))
    overall = flagged.sum() / max(counts.sum(), 1)
    rows = []
    for code in np.flatnonzero(counts):
        low, high = wilson(flagged[code] / counts[code], counts[code])
        rows.append(
            {
                "value": names[code],
                "num_samples": int(counts[code]),
                "num_flagged": int(flagged[code]),
                "flagged_share": float(flagged[code] / counts[code]),
                "low": low,
                "high": high,
                "differs": "higher" if low > overall else "lower" if high < overall else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["low"], -row["flagged_share"], row["num_samples"]))
