"""What scan's loop adds to a bare one: images a second of forward, backward and step alone, on tensors in place and
with torch's optimizer as it comes, and of `Training` with its shuffling, augmentation, tracker and Accelerate around
the same network. `Training` asks for one kernel for all parameters, which makes up for some of the rest."""

import statistics
import time
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from undermargin import Tracker
from undermargin.sources.source import load
from undermargin.training.network import NetworkPlan, build
from undermargin.training.plan import plan

NUM_IMAGES, BATCH, ROUNDS = 1280, 64, 25


def measure() -> dict[str, Any]:
    """Print and return images a second of both, taking turns."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (NUM_IMAGES, 32, 32, 3), dtype=np.uint8)  # as CIFAR-10's; what they show is no matter
    labels = np.arange(NUM_IMAGES) % 10
    chosen = plan(load((images, labels)))
    assert isinstance(chosen, NetworkPlan)
    engine, tracker = chosen.start(labels, 11, seed=0, budget=chosen.budget), Tracker(NUM_IMAGES, suggest=10)
    bare = _Bare(
        build(chosen.make_model, 11, seed=0), torch.from_numpy(images[:BATCH]), torch.from_numpy(labels[:BATCH])
    )
    speeds: dict[str, list[float]] = {"bare": [], "scan": []}
    for epoch in range(ROUNDS + 1):
        for name, run in (("bare", bare.run), ("scan", lambda: engine.run_epoch(epoch, tracker.update))):  # noqa: B023
            started = time.perf_counter()
            run()
            if epoch:  # the first is for warming up
                speeds[name].append(NUM_IMAGES / (time.perf_counter() - started))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    ratio = statistics.median(scan / bare for scan, bare in zip(speeds["scan"], speeds["bare"], strict=True))
    print(
        f"{chosen.model}, batch {BATCH}: bare {medians['bare']:.0f}, scan {medians['scan']:.0f} images/s, {ratio:.1%}"
    )
    return {"model": chosen.model, "images_per_second": medians, "ratio": ratio}


class _Bare:
    def __init__(self, model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.model, self.images, self.labels = model, images, labels
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)

    def run(self) -> None:
        for _ in range(NUM_IMAGES // BATCH):
            loss = F.cross_entropy(self.model(self.images), self.labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
