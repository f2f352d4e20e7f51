"""One training of the frameworks' examples, bare or watched, and its CPU seconds epoch by epoch."""

import time
from collections.abc import Callable
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from undermargin import IndexedDataset, RelabeledDataset, Tracker, folds

EPOCHS, ROUNDS = 4, 15  # epochs of a training; how often the three trainings take turns
KINDS = ("bare", "indexed", "watched")


class Clock:
    """CPU seconds of every epoch."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def start(self) -> None:
        """An epoch starts."""
        self.started = time.process_time()

    def stop(self) -> None:
        """An epoch ends."""
        self.seconds.append(time.process_time() - self.started)


class Task:
    """One training of the examples: digits, a small network, and a tracker if it is watched."""

    def __init__(self, kind: str) -> None:
        images, labels = load_digits(return_X_y=True)
        pixels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
        fold = folds(labels, num_classes=10)[0]
        dataset = RelabeledDataset(TensorDataset(pixels, torch.tensor(labels)), fold.labels.tolist())
        self.pixels, self.fold, self.is_watched, self.is_indexed = pixels, fold, kind == "watched", kind != "bare"
        self.dataset: Any = IndexedDataset(dataset) if self.is_indexed else dataset
        self.tracker = Tracker(len(labels), suggest=10)
        self.clock = Clock()
        torch.manual_seed(0)
        body = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        head = nn.Sequential(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, 11))
        self.model = nn.Sequential(body, head)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def loader(self) -> Any:
        """Shuffled batches."""
        return DataLoader(self.dataset, batch_size=64, shuffle=True)

    def loop(self, model: Any, optimizer: Any, loader: Any, backward: Callable[[Any], None]) -> None:
        """The user's own loop."""
        for _ in range(EPOCHS):
            self.clock.start()
            for x, label, *index in loader:
                logits = model(x)
                if self.is_watched:
                    self.tracker.update(logits, label, *index)
                optimizer.zero_grad()
                backward(cross_entropy(logits, label))
                optimizer.step()
            if self.is_watched:
                self.tracker.end_epoch()
            self.clock.stop()


def compare(train: Callable[[Task], None]) -> list[dict[str, float]]:
    """CPU seconds of the quickest epoch of each kind, round by round; the first epoch of a training is left out."""
    rounds = []
    for number in range(ROUNDS):
        order = KINDS if number % 2 else KINDS[::-1]
        tasks = {kind: Task(kind) for kind in order}
        for task in tasks.values():
            train(task)
        rounds.append({kind: min(task.clock.seconds[1:]) for kind, task in tasks.items()})
    return rounds
