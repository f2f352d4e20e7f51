"""Folds trained side by side: each in its own process, with its share of the cores."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import torch.multiprocessing as multiprocessing

from undermargin.errors import TrainingError
from undermargin.training.engine import Plan
from undermargin.training.fold import OnEpoch, Task, train_fold
from undermargin.training.processes import end_with


def train_side_by_side(plan: Plan, tasks: Sequence[Task], jobs: int, on_epoch: OnEpoch) -> None:
    """Train all tasks at once, each with a share of the threads among `jobs`; each writes its run to its folder."""
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    num_threads = max(1, torch.get_num_threads() // jobs)
    processes = [
        context.Process(target=_work, args=(plan, task, num_threads, os.getpid(), messages), daemon=True)
        for task in tasks
    ]
    try:
        with _without_main():
            for process in processes:
                process.start()
        _listen(processes, messages, on_epoch)
    except RuntimeError as error:  # such as a shared memory too small for the data
        raise TrainingError(f"the folds cannot be trained side by side: {error}; try --jobs 1") from None
    finally:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the user's script again: they need nothing from it.

    A new process imports the file of `__main__`, and a script without `if __name__ == "__main__"` would scan again.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _listen(processes: list[Any], messages: Any, on_epoch: OnEpoch) -> None:
    """Pass progress on until every process has sent None, which means that it is done."""
    import queue

    running = len(processes)
    while running:
        try:
            message = messages.get(timeout=1)
        except queue.Empty:
            fallen = [process for process in processes if process.exitcode not in (None, 0)]
            if fallen:
                raise TrainingError(
                    f"the process of a fold ended with exit code {fallen[0].exitcode}; was it killed for its memory? "
                    "Rerun to resume, with --jobs 1 to train one fold at a time"
                ) from None
            continue
        if isinstance(message, str):
            raise TrainingError(message)
        if message is None:
            running -= 1
        else:
            on_epoch(message)


def _work(plan: Plan, task: Task, num_threads: int, parent: int, messages: Any) -> None:
    end_with(parent)
    torch.set_num_threads(num_threads)
    try:
        train_fold(plan, task, messages.put)
    except Exception as error:  # of any kind: the parent raises it
        messages.put(f"fold {task.fold.number}: {type(error).__name__}: {error}")
    else:
        messages.put(None)
