"""Ten million samples: both folds tracked for three epochs, judged, written and read, in one process."""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from undermargin import Tracker, Verdicts, folds, identify

SIZES = (10_000, 10_000_000)
NUM_CLASSES, NUM_EPOCHS, BATCH = 10, 3, 1024


def measure() -> dict[str, Any]:
    """Run each size in a process of its own, so that peak memory is its own too."""
    found = {size: _in_a_process(size) for size in SIZES}
    for size, numbers in found.items():
        print(
            f"{size:>11,} samples: tracking {numbers['tracking']:6.0f} ns a sample and epoch, "
            f"everything {numbers['total']:7.0f} ns a sample, peak {numbers['peak_mib']:6.0f} MiB, "
            f"state {numbers['state_bytes']:.1f} bytes a sample"
        )
    small, large = (found[size] for size in SIZES)
    ratio = large["tracking"] / small["tracking"]
    print(f"tracking a sample costs {ratio:.2f}x as much at {SIZES[1]:,} as at {SIZES[0]:,} (asked: at most 1.6x)")
    return {"sizes": {str(size): numbers for size, numbers in found.items()}, "ratio": ratio}


def _in_a_process(size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.scale", str(size)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    values = [float(value) for value in result.stdout.split()]
    return dict(zip(("tracking", "total", "peak_mib", "state_bytes"), values, strict=True))


def run(size: int) -> None:
    """Track, judge, write, read; print nanoseconds a sample, peak MiB and bytes a sample."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, NUM_CLASSES, size)
    started = time.perf_counter()
    tracking: list[float] = []
    runs, state_bytes = [], 0.0
    for fold in folds(labels, NUM_CLASSES, seed=0):
        tracker = Tracker(size)
        tracking += _track(tracker, torch.from_numpy(fold.labels))
        tensors = [value for value in tracker.state_dict().values() if isinstance(value, torch.Tensor)]
        state_bytes = sum(tensor.nbytes for tensor in tensors) / size
        runs.append(tracker.run(fold))
        del tracker, tensors
    verdicts = identify(runs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.parquet"
        verdicts.save(path)
        loaded = Verdicts.load(path)
    assert len(loaded) == size
    total = (time.perf_counter() - started) / size * 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(statistics.median(tracking) * 1e9, total, peak, state_bytes)


def _track(tracker: Tracker, labels: torch.Tensor) -> list[float]:
    """Seconds a sample, of each epoch; a small set is tracked for many more, for a time worth reading."""
    size = len(labels)
    logits = torch.randn(BATCH, NUM_CLASSES + 1, generator=torch.Generator().manual_seed(0))
    batches = torch.split(torch.randperm(size, generator=torch.Generator().manual_seed(0)), BATCH)
    seconds = []
    for _ in range(max(NUM_EPOCHS, 1_000_000 // size)):
        spent = 0.0
        for batch in batches:
            given = (logits[: len(batch)], labels[batch], batch)
            started = time.perf_counter()
            tracker.update(*given)
            spent += time.perf_counter() - started
        started = time.perf_counter()
        tracker.end_epoch()
        seconds.append((spent + time.perf_counter() - started) / size)
    return seconds


if __name__ == "__main__":
    run(int(sys.argv[1]))
