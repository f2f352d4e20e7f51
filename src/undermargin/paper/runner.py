"""Run what is missing, one cell after the other, side by side, or on a cluster."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

import undermargin
from undermargin.errors import DivergedError, InputError, TrainingError, UndermarginError
from undermargin.files import only_one, replacing
from undermargin.paper.cell import Cell
from undermargin.paper.store import Store
from undermargin.processes import end_with

OnCell = Callable[[Cell, dict[str, Any]], None]  # its numbers, or {"failed": why}


@dataclass(frozen=True)
class Runner:
    """Where data are found and results kept, and how many cells run at a time."""

    store: Store
    root: Path  # of the official data sets
    num_jobs: int = 1
    on_cluster: bool = False  # Ray's; `root` and the store's folder must be seen by all of its machines

    def run(self, cells: Sequence[Cell], on_cell: OnCell = lambda cell, numbers: None) -> None:  # noqa: ARG005
        """Run every cell that has no result yet; a kill loses at most the running ones, a failed cell only itself."""
        self.store.folder.mkdir(parents=True, exist_ok=True)
        # two runners would train the same cells in the same places
        with only_one(self.store.folder / "lock", partial(_say_waiting, self.store.folder)):
            done = self.store.results()
            missing = list({cell.key: cell for cell in cells if cell.key not in done}.values())
            failures = []
            for cell, outcome in self._finished(missing):
                if isinstance(outcome, Exception):
                    failures.append((cell, outcome))
                    on_cell(cell, {"failed": str(outcome)})
                    continue
                self.store.add(cell, *outcome)
                shutil.rmtree(self.store.work(cell) / cell.key, ignore_errors=True)  # not before it is stored
                on_cell(cell, outcome[0])
        if failures:
            cell, error = failures[0]
            if isinstance(error, UndermarginError) and len({str(one) for _, one in failures}) == 1:
                raise error
            raise TrainingError(
                f"{len(failures)} of {len(missing)} cells failed, first {cell}: {type(error).__name__}: {error}"
            ) from error

    def _finished(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, "Done | Exception"]]:
        if self.on_cluster:
            yield from self._on_ray(cells)
        elif self.num_jobs == 1:
            yield from ((cell, _tried(cell, self.store, self.root)) for cell in cells)
        else:
            yield from self._side_by_side(cells)

    def _side_by_side(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, "Done | Exception"]]:
        context = get_context("spawn")
        threads = max(1, (os.cpu_count() or 1) // self.num_jobs)
        begin = (threads, os.getpid(), context.Value("i", 0))
        with ProcessPoolExecutor(self.num_jobs, context, _begin, begin) as pool:
            futures = {pool.submit(_tried, cell, self.store, self.root): cell for cell in cells}
            try:
                yield from ((futures[future], future.result()) for future in as_completed(futures))
            except BaseException:  # interrupted: do not wait for the others
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in active_children():
                    worker.terminate()
                raise

    def _on_ray(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, "Done | Exception"]]:
        try:
            import ray
        except ImportError:
            raise InputError("a cluster needs Ray: pip install 'undermargin[ray]'") from None
        if not ray.is_initialized():
            ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
        has_devices = ray.cluster_resources().get("GPU", 0) > 0
        remote = ray.remote(num_gpus=1 if has_devices else 0)(_tried)
        store, root = Store(self.store.folder.resolve()), self.root.resolve()  # workers run in folders of their own
        running = {remote.remote(cell, store, root): cell for cell in cells}
        while running:
            (ready, *_), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(ready), ray.get(ready)


Done = tuple[dict[str, Any], dict[str, Any]]  # numbers, and how they came about


def _tried(cell: Cell, store: Store, root: Path) -> Done | Exception:
    try:
        return run_cell(cell, store, root)
    except Exception as error:  # whatever it is, the other cells go on
        return error


def run_cell(cell: Cell, store: Store, root: Path) -> Done:
    """A cell's numbers, and how they came about; a training that diverged is a result, too."""
    from undermargin.paper.kinds import KINDS, Outcome, Place
    from undermargin.paper.prepared import prepare

    code, started = commit(), time.perf_counter()
    place = Place(own=store.work(cell) / cell.key, folds=store.work(cell))
    place.own.mkdir(parents=True, exist_ok=True)
    prepared = prepare(cell, root, store.photos)
    try:
        outcome = KINDS[cell.kind](cell, prepared, place)
    except DivergedError as error:
        outcome = Outcome({"diverged": str(error)})
    if outcome.arrays:
        _save(store.folder / "arrays" / f"{cell.key}.npz", outcome.arrays)
    about = {
        "source": prepared.source,
        "seconds": round(time.perf_counter() - started, 1),
        "commit": code,
        "version": undermargin.__version__,
        "num_threads": _num_threads(),
    }
    return outcome.numbers, about


def commit() -> str:
    """The commit of the code that runs, marked if that code was changed since; empty outside of a checkout."""
    package = Path(undermargin.__file__).parent

    def git(*words: str) -> str:
        found = subprocess.run(["git", "-C", str(package), *words], capture_output=True, text=True, check=True)  # noqa: S603, S607
        return found.stdout.strip()

    try:
        # results that are stored in the same checkout are no change of the code
        return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _say_waiting(folder: Path) -> None:
    print(f"another run is at work in {folder}: waiting for it to end", file=sys.stderr)  # noqa: T201


def _save(path: Path, arrays: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _begin(num_threads: int, runner: int, count: Any) -> None:
    """A worker has its share of the cores, a GPU by its number where there are any, and ends with its runner."""
    import torch

    end_with(runner)
    torch.set_num_threads(num_threads)
    with count.get_lock():
        number = count.value
        count.value += 1
    if torch.cuda.is_available():
        torch.cuda.set_device(number % torch.cuda.device_count())


def _num_threads() -> int:
    import torch

    return torch.get_num_threads()
