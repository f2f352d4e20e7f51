"""The whole procedure on real digits with labels flipped on purpose: what is found, what is missed."""

import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from undermargin import noise
from undermargin.errors import FolderError
from undermargin.models.images import Normalised
from undermargin.models.small import small_cnn
from undermargin.scans.folder import Folder
from undermargin.scans.procedure import Hooks, run
from undermargin.scans.settings import Settings
from undermargin.sources.digits import NUM_CLASSES, Digits, load_digits
from undermargin.sources.samples import Reading
from undermargin.storage.files import replacing
from undermargin.training.engine import Budget
from undermargin.training.network import NetworkPlan
from undermargin.training.retrain import retrain
from undermargin.verdicts import metrics
from undermargin.verdicts.record import Verdicts

EPOCHS = 60
FOLDS = 5  # the digits are few: with five folds every one of them is held out once
RETRAIN = Budget(epochs=30, batch_size=64, drops=(0.5, 0.75))
DATA = "digits.npz"  # in the scan's folder: the digits with their flipped labels

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Demo:
    """What a demo found: the verdicts, how good they are, and the test error before and after cleaning."""

    verdicts: Verdicts
    images: npt.NDArray[np.uint8]  # (samples, 8, 8, 1)
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
    labels, verdicts = flip_and_scan(folder, digits, rate=rate, seed=seed, advance=advance)
    is_flipped = labels != digits.train_labels
    found = metrics.identification(verdicts, is_flipped)
    everything, rest = np.arange(len(labels)), np.flatnonzero(~verdicts.is_flagged)
    before = _test_error(digits, labels, everything, seed, partial(advance, "training on all"))
    after = _test_error(digits, labels, rest, seed, partial(advance, "training on the rest"))
    with folder.locked():
        about = {"noise": {"kind": "uniform", "rate": rate, "seed": seed}, "found": found}
        summary = folder.read_json("summary.json") | about | {"test_error": {"before": before, "after": after}}
        folder.write_json("summary.json", summary)
        folder.write_manifest()
    num_found = int((is_flipped & verdicts.is_flagged).sum())
    seconds = time.perf_counter() - started
    return Demo(verdicts, digits.train_images, found, int(is_flipped.sum()), num_found, before, after, seconds)


def flip_and_scan(
    folder: Folder,
    digits: Digits,
    *,
    rate: float,
    seed: int,
    epochs: int = EPOCHS,
    advance: Callable[[str], None] = lambda stage: None,  # noqa: ARG005
) -> tuple[Labels, Verdicts]:
    """The flipped labels and the verdicts of a scan of them."""
    labels = noise.uniform(digits.train_labels, rate, NUM_CLASSES, seed=seed)
    _write_data(folder, digits, labels)
    reading, settings = Reading(), Settings(epochs=epochs, folds=FOLDS, seed=seed)
    hooks = Hooks(on_epoch=lambda progress: advance(f"fold {progress.fold}"))
    verdicts = run(folder / DATA, folder, reading, settings, hooks)
    return labels, verdicts


def _write_data(folder: Folder, digits: Digits, labels: Labels) -> None:
    """The digits with their flipped labels as a file, so that they can be reviewed and cleaned like anybody's data."""
    folder.path.mkdir(parents=True, exist_ok=True)
    if (folder / DATA).is_file():
        try:
            with np.load(folder / DATA) as file:
                is_same = np.array_equal(file["y"], labels)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise FolderError(f"{folder / DATA} is not a demo's; choose another folder with --out") from None
        if not is_same:
            raise FolderError(f"{folder.path} holds a demo with other flips; choose another folder with --out")
        return
    with replacing(folder / DATA) as path, path.open("wb") as file:
        np.savez_compressed(file, x=digits.train_images, y=labels)


def num_steps() -> int:
    """How often `demo` calls `advance`."""
    return FOLDS * EPOCHS + 2 * RETRAIN.epochs


def _test_error(
    digits: Digits, labels: Labels, kept: npt.NDArray[np.int64], seed: int, advance: Callable[[], None]
) -> float:
    images = torch.from_numpy(np.concatenate([digits.train_images, digits.test_images]))
    engine = retrain(
        NetworkPlan("a larger network", _large_cnn, (images,), RETRAIN),
        np.concatenate([labels, digits.test_labels]),
        kept,
        num_samples=len(labels),
        num_classes=NUM_CLASSES,
        budget=RETRAIN,
        seed=seed,
        end_epoch=advance,
    )
    logits = engine.predict(np.arange(len(labels), len(images)))
    return metrics.error(logits.argmax(1), digits.test_labels)


def _large_cnn(num_outputs: int) -> torch.nn.Module:
    """What a user would train in the end: larger, it learns wrong labels by heart if it is given any."""
    return Normalised(small_cnn(num_outputs, depth=2), from_black=True)
