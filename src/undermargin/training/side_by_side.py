"""Folds side by side: each in a process of its own, with its share of the cores."""

import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.multiprocessing as multiprocessing

from undermargin.errors import TrainingError
from undermargin.training.engine import Plan
from undermargin.training.fold import OnEpoch, Task, train_fold
from undermargin.training.processes import end_with


def train_side_by_side(plan: Plan, tasks: Sequence[Task], jobs: int, on_epoch: OnEpoch) -> None:
    """Train all tasks at once, each with its share of the threads among `jobs`; each leaves its run in its folder."""
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    num_threads = max(1, torch.get_num_threads() // jobs)
    processes = [
        context.Process(target=_work, args=(plan, task, num_threads, os.getpid(), messages), daemon=True)
        for task in tasks
    ]
    try:
        for process in processes:
            process.start()
        _listen(processes, messages, on_epoch)
    except RuntimeError as error:  # such as a shared memory too small for the data
        raise TrainingError(f"the folds cannot be trained side by side: {error}; --jobs 1 does without") from None
    finally:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _listen(processes: list[Any], messages: Any, on_epoch: OnEpoch) -> None:
    """Pass progress on until every process has said that it is done; None is that word."""
    import queue

    running = len(processes)
    while running:
        try:
            message = messages.get(timeout=1)
        except queue.Empty:
            fallen = [process for process in processes if process.exitcode not in (None, 0)]
            if fallen:
                raise TrainingError(
                    f"a fold's process ended with exit code {fallen[0].exitcode}: killed for its memory, or started "
                    "from a script without 'if __name__ == \"__main__\"'? It goes on from here; jobs=1 needs none"
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
    except Exception as error:  # whatever it is, the parent must hear of it
        messages.put(f"fold {task.fold.number}: {type(error).__name__}: {error}")
    else:
        messages.put(None)
