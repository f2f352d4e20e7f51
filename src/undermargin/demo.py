"""The whole procedure on real digits with labels flipped on purpose: what is found, what is missed."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from undermargin import metrics, noise, roots
from undermargin.data.arrays import load_arrays
from undermargin.data.digits import NUM_CLASSES, Digits, load_digits
from undermargin.data.samples import Samples
from undermargin.files import append_line, replacing, save_tensors
from undermargin.folder import Folder
from undermargin.folds import NUM_FOLDS, Fold, Procedure, folds, seeds
from undermargin.identify import identify
from undermargin.models.small import small_cnn
from undermargin.retrain import retrain
from undermargin.run import Run
from undermargin.scan import environment
from undermargin.tracker import Tracker
from undermargin.training.augmentation import augmentation
from undermargin.training.network import Budget, Training, build, predict
from undermargin.verdicts import Verdicts

SCAN = Budget(epochs=60, batch_size=32, weight_decay=1e-3)
# the network that a user would train in the end is larger, and learns wrong labels by heart if it is given any
LARGE_CNN = partial(small_cnn, depth=2)
RETRAIN = Budget(epochs=30, batch_size=64, drops=(0.5, 0.75))


@dataclass(frozen=True)
class Demo:
    """What a demo found: the verdicts, how good they are, and the test error before and after cleaning."""

    verdicts: Verdicts
    images: npt.NDArray[np.float32]  # (samples, 1, 8, 8)
    found: dict[str, float]
    num_flipped: int
    num_found: int  # of the flipped, flagged
    error_before: float
    error_after: float
    seconds: float


def demo(
    out: str | Path,
    *,
    rate: float = 0.2,
    seed: int = 0,
    advance: Callable[[str], None] = lambda stage: None,  # noqa: ARG005
) -> Demo:
    """Flip labels, scan, clean, retrain; leaves a scan folder in `out`. `advance(stage)` is called every epoch."""
    started = time.perf_counter()
    digits, folder = load_digits(), Folder(out)
    with folder.locked():
        labels, verdicts = flip_and_scan(folder, digits, rate=rate, seed=seed, advance=advance)
        scanning = time.perf_counter() - started
        is_flipped = labels != digits.train_labels
        found = metrics.identification(verdicts, is_flipped)
        everything, rest = np.arange(len(labels)), np.flatnonzero(~verdicts.is_flagged)
        before = _test_error(digits, labels, everything, seed, partial(advance, "training on all"))
        after = _test_error(digits, labels, rest, seed, partial(advance, "training on the rest"))
        seconds = time.perf_counter() - started
        errors = {"before": before, "after": after}
        observed = NUM_FOLDS * SCAN.epochs * len(labels)
        folder.save_verdicts(
            verdicts,
            found=found,
            test_error=errors,
            seconds=round(seconds, 1),
            samples_per_second=round(observed / scanning),
        )
        folder.write_manifest()
    num_found = int((is_flipped & verdicts.is_flagged).sum())
    return Demo(verdicts, digits.train_images, found, int(is_flipped.sum()), num_found, before, after, seconds)


def flip_and_scan(
    folder: Folder,
    digits: Digits,
    *,
    rate: float,
    seed: int,
    epochs: int = SCAN.epochs,
    advance: Callable[[str], None] = lambda stage: None,  # noqa: ARG005
) -> tuple[npt.NDArray[np.int64], Verdicts]:
    """The flipped labels and the verdicts of the paper's procedure on them."""
    labels = noise.uniform(digits.train_labels, rate, NUM_CLASSES, seed=seed)
    budget = replace(SCAN, epochs=epochs)
    data = _write_data(folder, digits, labels)
    folder.write_json("config.json", _config(data, rate, seed, budget))
    both = folds(labels, NUM_CLASSES, seed=seed, procedure=Procedure.paper)
    runs = [
        _train_fold(folder, digits, fold, budget, fold_seed, advance)
        for fold, fold_seed in zip(both, seeds(Procedure.paper, seed), strict=True)
    ]
    return labels, identify(runs)


def num_steps() -> int:
    """How often `demo` calls `advance`."""
    return 2 * SCAN.epochs + 2 * RETRAIN.epochs


def _train_fold(
    folder: Folder, digits: Digits, fold: Fold, budget: Budget, seed: int, advance: Callable[[str], None]
) -> Run:
    images, labels = torch.from_numpy(digits.train_images), torch.from_numpy(fold.labels)
    tracker = Tracker(len(labels), suggest=fold.num_classes)

    model = build(small_cnn, fold.num_outputs, seed=seed)
    training = Training(model, (images,), labels, budget, seed=seed, augment=augmentation(pixels=1, flips=False))
    path = folder.fold(fold.number)
    for epoch in range(budget.epochs):
        started = time.perf_counter()
        training.run_epoch(epoch, tracker.update)
        tracker.end_epoch()
        append_line(path / "log.jsonl", {"epoch": epoch, "seconds": round(time.perf_counter() - started, 3)})
        advance(f"fold {fold.number}")
    run = tracker.run(fold, class_names=[str(digit) for digit in range(NUM_CLASSES)])
    run.save(path / "scores.parquet")
    save_tensors(path / "checkpoint.safetensors", training.tensors())
    return run


def _test_error(
    digits: Digits, labels: npt.NDArray[np.int64], kept: npt.NDArray[np.int64], seed: int, advance: Callable[[], None]
) -> float:
    model = retrain(
        LARGE_CNN,
        (torch.from_numpy(digits.train_images),),
        torch.from_numpy(labels),
        kept,
        RETRAIN,
        num_classes=NUM_CLASSES,
        seed=seed,
        end_epoch=advance,
    )
    predictions = predict(model, (torch.from_numpy(digits.test_images),), NUM_CLASSES)
    return metrics.error(predictions, digits.test_labels)


def _write_data(folder: Folder, digits: Digits, labels: npt.NDArray[np.int64]) -> Samples:
    """The digits with their flipped labels as a file, so that they can be reviewed and cleaned like anybody's data."""
    path = (folder / "digits.npz").absolute()
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, x=(digits.train_images[:, 0] * 255).astype(np.uint8), y=labels)
    roots.confirm(folder.path, path)
    return load_arrays(path)


def _config(data: Samples, rate: float, seed: int, budget: Budget) -> dict[str, Any]:
    return {
        "source": data.found,
        "kind": data.kind,
        "fingerprint": data.fingerprint(),
        "noise": {"kind": "uniform", "rate": rate, "seed": seed},
        "seed": seed,
        "model": "small_cnn",
        "budget": asdict(budget),
        "procedure": asdict(Procedure.paper),
        **environment(),
    }
