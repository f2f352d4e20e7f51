"""A report of a million samples: seconds and megabytes, in a process of its own as a user runs it."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from undermargin import Run, identify
from undermargin.scans.folder import Folder
from undermargin.sources.rows import from_table
from undermargin.sources.samples import Reading
from undermargin.storage import consent as roots

NUM_SAMPLES, NUM_CLASSES = 1_000_000, 100
ASKED_SECONDS, ASKED_MEGABYTES = 20, 8


def measure() -> dict[str, Any]:
    """Make a scan's folder of texts with 3 % of the labels wrong, and its report by two columns."""
    with tempfile.TemporaryDirectory() as place:
        folder = _scan(Path(place))
        command = [sys.executable, "-m", "undermargin", "report", str(folder.path), "--by", "city", "--by", "age"]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        megabytes = (folder / "report.html").stat().st_size / 1e6
    print(f"{NUM_SAMPLES:,} samples in {NUM_CLASSES} classes, by two columns: {seconds:.1f} s, {megabytes:.2f} MB")
    print(f"asked: under {ASKED_SECONDS} s and under {ASKED_MEGABYTES} MB")
    return {"num_samples": NUM_SAMPLES, "seconds": round(seconds, 2), "megabytes": round(megabytes, 3)}


def _scan(place: Path) -> Folder:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, NUM_CLASSES, NUM_SAMPLES)
    numbers = pa.array(np.arange(NUM_SAMPLES)).cast(pa.string())
    table = pa.table(
        {
            "id": numbers,
            "text": pa.array([f"this is text number {number}" for number in range(NUM_SAMPLES)]),
            "label": pa.array([f"class {label:02d}" for label in labels]),
            "city": pa.array(np.array(["Rome", "Oslo", "Bern"])[rng.integers(0, 3, NUM_SAMPLES)]),
            "age": rng.integers(18, 90, NUM_SAMPLES),
        }
    )
    csv.write_csv(table, place / "texts.csv")
    samples = from_table(table, Reading(), {"path": str(place / "texts.csv"), "format": "CSV"})
    is_wrong = rng.random(NUM_SAMPLES) < 0.03
    folder, runs = Folder(place / "scan"), []
    for fold in (0, 1):
        is_threshold = rng.permutation(NUM_SAMPLES) < NUM_SAMPLES // (NUM_CLASSES + 1)
        low = is_wrong | is_threshold
        run = Run(
            np.where(low, -3.0, 3.0) + rng.normal(size=NUM_SAMPLES),
            is_threshold,
            labels=samples.labels,
            ids=samples.ids,
            class_names=samples.class_names,
            suggested_labels=np.where(is_wrong, rng.integers(0, NUM_CLASSES, NUM_SAMPLES), -1),
            suggestion_confidence=np.where(is_wrong, 0.5, 0.0),
            fold=fold,
        )
        run.save(folder.fold(fold) / "scores.parquet")
        runs.append(run)
    folder.write_json("config.json", {"source": samples.found, "kind": samples.kind})
    folder.save_verdicts(identify(runs))
    roots.confirm(folder.path, place / "texts.csv")
    return folder


if __name__ == "__main__":
    measure()
