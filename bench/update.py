"""One step of tracking against the authors' package, on the same tensors, in one process, on one thread."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from aum import AUMCalculator as TheirCalculator
from torch.utils._python_dispatch import TorchDispatchMode

from undermargin import Tracker
from undermargin.compat.aum import AUMCalculator
from undermargin.tracking.scores import SCORES

NUM_SAMPLES = 50_000
CASES = [(64, 10, 15), (256, 10, 40), (256, 1000, 15)]  # batch, classes, asked for
ROUNDS = 9


def measure() -> dict[str, Any]:
    """Print and return microseconds a step and ratios."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure()
    finally:
        torch.set_num_threads(threads)


def _measure() -> dict[str, Any]:
    peer = f"aum {version('aum')}"
    print(f"microseconds a step, median of {ROUNDS} rounds; times faster than {peer} in brackets")
    print(f"{'batch x classes':>16} {peer:>10} {'Tracker':>16} {'compat':>16} {'all scores':>12} {'x AUM alone':>12}")
    results: dict[str, Any] = {"peer": peer, "cases": []}
    for batch, classes, asked in CASES:
        micros = _case(batch, classes)
        base, alone = micros["peer"], micros["tracker"]
        print(
            f"{f'{batch} x {classes}':>16} {base:10.0f} {alone:7.1f} ({base / alone:5.1f}x) "
            f"{micros['compat']:7.1f} ({base / micros['compat']:5.1f}x) {micros['all_scores']:12.1f} "
            f"{micros['all_scores'] / alone:11.1f}x   asked: {asked}x"
        )
        results["cases"].append({"batch": batch, "classes": classes, "microseconds": micros})
    results["operations"] = {f"{batch} x {classes}": _operations(batch, classes) for batch, classes, _ in CASES}
    print("dispatched operations a step (mean over an epoch):", results["operations"])
    results["help_seconds"] = min(_help_seconds() for _ in range(5))
    print(f"undermargin --help: {results['help_seconds']:.2f} s")
    return results


def _help_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "undermargin", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _batch(batch: int, classes: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (
        torch.randn(batch, classes, generator=generator),
        torch.randint(0, classes, (batch,), generator=generator),
        torch.randperm(NUM_SAMPLES, generator=generator)[:batch],
    )


def _case(batch: int, classes: int) -> dict[str, float]:
    logits, labels, indices = _batch(batch, classes)
    ids = indices.tolist()
    theirs, compat = (make(tempfile.mkdtemp()) for make in (TheirCalculator, AUMCalculator))
    alone, everything = Tracker(NUM_SAMPLES), Tracker(NUM_SAMPLES, list(SCORES))
    steps: dict[str, Callable[[], object]] = {
        "peer": lambda: theirs.update(logits, labels, ids),
        "tracker": lambda: alone.update(logits, labels, indices),
        "compat": lambda: compat.update(logits, labels, ids),
        "all_scores": lambda: everything.update(logits, labels, indices),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):  # taking turns, so that a busy moment hits all of them
        for name, step in steps.items():
            repeats = 30 if name == "peer" else 300
            started = time.perf_counter()
            for _ in range(repeats):
                step()
            times[name].append((time.perf_counter() - started) / repeats * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


class _Count(TorchDispatchMode):
    """Counts dispatched operations."""

    number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += 1
        return func(*args, **(kwargs or {}))


def _operations(batch: int, classes: int) -> float:
    given = _batch(batch, classes)
    tracker = Tracker(NUM_SAMPLES)
    tracker.update(*given)
    steps = NUM_SAMPLES // batch
    with _Count() as count:
        for _ in range(steps):
            tracker.update(*given)
    return round(count.number / steps, 1)
