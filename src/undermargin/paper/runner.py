"""Runs the cells that have no result yet: one after the other, in parallel, or on a cluster."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

import undermargin
from undermargin.errors import DivergedError, InputError, TrainingError, UndermarginError
from undermargin.paper.cell import Cell
from undermargin.paper.store import Store
from undermargin.storage.files import replacing
from undermargin.storage.locks import only_one
from undermargin.training.processes import end_with

CHECKPOINTS = "*.safetensors"
KILLED = "its process was killed; was there enough memory?"

OnCell = Callable[[Cell, dict[str, Any]], None]  # gets the numbers of a cell, or {"failed": why}


@dataclass(frozen=True)
class Runner:
    """Runs cells with data from `root` and adds their results to the store."""

    store: Store
    root: Path  # of the official data sets
    num_jobs: int = 1  # cells that run at the same time
    on_cluster: bool = False  # run with Ray; all machines need access to `root` and to the folder of the store

    def run(self, cells: Sequence[Cell], on_cell: OnCell = lambda cell, numbers: None) -> None:  # noqa: ARG005
        """Run every cell that has no result yet. A failed cell does not stop the others, and a killed run resumes."""
        self.store.folder.mkdir(parents=True, exist_ok=True)
        # two runners would write the same checkpoints
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
                shutil.rmtree(self.store.work(cell, outcome[1]["commit"]) / cell.key, ignore_errors=True)
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
        """Each job runs in its own process: if it is killed, only its cell fails."""
        waiting = iter(cells)
        processes = [self._process(job) for job in range(self.num_jobs)]
        running: dict[Future[Done | Exception], tuple[int, Cell]] = {}

        def begin(job: int) -> None:
            for cell in islice(waiting, 1):
                running[processes[job].submit(_tried, cell, self.store, self.root)] = job, cell

        try:
            for job in range(self.num_jobs):
                begin(job)
            while running:
                ended = wait(running, return_when=FIRST_COMPLETED).done.pop()
                job, cell = running.pop(ended)
                try:
                    outcome = ended.result()
                except BrokenProcessPool:
                    outcome = TrainingError(f"{cell}: {KILLED}")
                    processes[job] = self._process(job)
                begin(job)
                yield cell, outcome
        except BaseException:  # interrupted: do not wait for the other jobs
            for worker in active_children():
                worker.terminate()
            raise
        finally:
            for process in processes:
                process.shutdown(cancel_futures=True)

    def _process(self, job: int) -> ProcessPoolExecutor:
        threads = max(1, (os.cpu_count() or 1) // self.num_jobs)
        return ProcessPoolExecutor(1, get_context("spawn"), _begin, (threads, os.getpid(), job))

    def _on_ray(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, "Done | Exception"]]:
        try:
            import ray
        except ImportError:
            raise InputError("a cluster needs Ray: pip install 'undermargin[ray]'") from None
        if not ray.is_initialized():
            ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
        has_devices = ray.cluster_resources().get("GPU", 0) > 0
        remote = ray.remote(num_gpus=1 if has_devices else 0)(_tried)
        store, root = Store(self.store.folder.resolve()), self.root.resolve()  # workers have other working folders
        running = {remote.remote(cell, store, root): cell for cell in cells}
        while running:
            (ready, *_), _ = ray.wait(list(running), num_returns=1)
            cell = running.pop(ready)
            try:
                outcome = ray.get(ready)
            except ray.exceptions.RayError as error:
                outcome = TrainingError(f"{cell}: {KILLED} ({type(error).__name__})")
            yield cell, outcome


Done = tuple[dict[str, Any], dict[str, Any]]  # the numbers of a cell, and their provenance


def _tried(cell: Cell, store: Store, root: Path) -> Done | Exception:
    try:
        return run_cell(cell, store, root)
    except Exception as error:  # no error stops the other cells
        return error


def run_cell(cell: Cell, store: Store, root: Path) -> Done:
    """The numbers of a cell and their provenance. A training that diverges is a result as well."""
    from undermargin.paper.kinds import KINDS, Outcome
    from undermargin.paper.prepared import precision, prepare
    from undermargin.paper.shared import Place, finished, stages

    code, started, computed = commit(), time.perf_counter(), time.process_time()
    work = store.work(cell, code)
    place = Place(own=work / cell.key, folds=work, records=store.records(cell), commit=code)
    place.own.mkdir(parents=True, exist_ok=True)
    shared = stages(cell)
    resumed = any(place.own.rglob(CHECKPOINTS)) or bool(shared and any(work.glob(CHECKPOINTS)))
    resumed |= any(finished(place, stage) is not None for stage in shared)
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
        "cpu_seconds": round(time.process_time() - computed, 1),  # of all threads; a busy machine takes longer
        **({"resumed": True} if resumed else {}),  # an earlier start, or a cell that shares trainings, took more
        **(
            {"shared": found}
            if (found := {stage: about for stage in shared if (about := finished(place, stage))})
            else {}
        ),
        **({"precision": used} if (used := precision(cell.study)) != "no" else {}),
        "commit": code,
        "version": undermargin.__version__,
        **_machine(),
    }
    return outcome.numbers, about


def commit() -> str:
    """The last commit that changed the package, marked if it was changed since; empty outside of a checkout."""
    package = Path(undermargin.__file__).parent

    def git(*words: str) -> str:
        found = subprocess.run(["git", "-C", str(package), *words], capture_output=True, text=True, check=True)  # noqa: S603, S607
        return found.stdout.strip()

    try:
        # only the package counts: results that are stored in the same checkout do not change the code
        is_changed = git("status", "--porcelain", "--", ".")
        return git("log", "-1", "--format=%h", "--abbrev=12", "--", ".") + ("-dirty" if is_changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _say_waiting(folder: Path) -> None:
    print(f"another process is running experiments in {folder}; waiting for it to end", file=sys.stderr)  # noqa: T201


def _save(path: Path, arrays: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _begin(num_threads: int, runner: int, job: int) -> None:
    """Give a worker its share of the cores and a GPU, if there is one, and let it end with the runner."""
    import torch

    end_with(runner)
    torch.set_num_threads(num_threads)
    if torch.cuda.is_available():
        torch.cuda.set_device(job % torch.cuda.device_count())


def _machine() -> dict[str, Any]:
    """What rounding depends on: with other threads or vector instructions, a seed gives slightly different numbers."""
    import torch

    return {
        "torch": torch.__version__,
        "num_threads": torch.get_num_threads(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        **({"onednn": limit} if (limit := os.environ.get("ONEDNN_MAX_CPU_ISA")) else {}),  # limits convolutions only
    }
