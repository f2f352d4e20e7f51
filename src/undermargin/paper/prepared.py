"""A cell's data: the official samples with noise in their labels, ready to be trained on."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from undermargin import noise
from undermargin.errors import InputError
from undermargin.models.images import PHOTOS, SPREADS, Centre, Spread, Standardised
from undermargin.models.names import row
from undermargin.paper import photos
from undermargin.paper.cell import Cell
from undermargin.paper.study import Study
from undermargin.recipes import RECIPES, Known, Lesson
from undermargin.sources import official
from undermargin.sources.digits import load_digits
from undermargin.sources.official.record import Joined, OfficialSet
from undermargin.sources.pixels import Pixels
from undermargin.training.augmentation import Augment, Augmentation, ScaledCrops
from undermargin.training.network import NetworkPlan

Labels = npt.NDArray[np.int64]
PLAIN = Spread((0.5,), (0.25,))  # for gray images without published constants
SIDE = 224  # of photos, cut from larger ones
DIGITS = [str(digit) for digit in range(10)]
TRUSTED_SHARE = 0.1  # of the samples: the data-driven MentorNet is told their true labels


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training samples with the test samples behind them."""

    images: npt.NDArray[np.uint8] | Pixels  # (samples, height, width, channels)
    labels: Labels  # (samples,) with noise in the training part
    true_labels: Labels  # (training samples,)
    indices: Labels  # (training samples,) their places in the training set as it was read
    class_names: list[str]
    source: dict[str, str]  # which version of the data set was read
    names: Sequence[str] | None = None  # (training samples,) file names, if there are any

    @property
    def is_flipped(self) -> npt.NDArray[np.bool_]:
        """Which labels were changed: (training samples,)."""
        return np.asarray(self.labels[: len(self.true_labels)] != self.true_labels)

    @property
    def test_rows(self) -> Labels:
        """Rows of the test samples, which come after the training samples."""
        return np.arange(len(self.true_labels), len(self.labels))


def prepare(cell: Cell, root: Path, folder: Path) -> Prepared:
    """Draw the cell's samples and flip labels, both with its seed; large sets of photos are decoded into `folder`."""
    study = cell.study
    train, test = official_training_set(study, root), _official_test_set(study, root)
    if study.num_train is not None and len(train) < study.num_train:
        raise InputError(f"{study.data} has {len(train)} training samples here, this preset needs {study.num_train}")
    rng = np.random.default_rng(cell.seed)
    indices = np.sort(rng.permutation(len(train))[: study.num_train])
    # the test samples do not depend on the seed, so that seeds differ only in training
    tested = np.sort(np.random.default_rng(0).permutation(len(test))[: study.num_test])
    both = _joined(train.subset(indices), test.subset(tested))
    images, skipped = photos.read(both, study.image_size, folder)
    unreadable = dict(skipped)  # left out together with their labels
    is_read = np.array([name not in unreadable for name in both.ids])
    indices, tested = indices[is_read[: len(indices)]], tested[is_read[len(indices) :]]
    true_labels, num_classes = train.labels[indices], len(train.class_names)
    flip = {"uniform": noise.uniform, "asymmetric": noise.asymmetric}.get(cell.noise)
    noisy = true_labels if flip is None else flip(true_labels, cell.rate, num_classes, seed=cell.seed)
    labels = np.concatenate([noisy, test.labels[tested]])
    source = {"format": train.found.get("format", study.data), "fingerprint": fingerprint(train)}
    if skipped:
        source["unreadable"] = f"{len(skipped)} left out, first {': '.join(skipped[0])}"
    names = None if train.file_names is None else [train.file_names[index] for index in indices]
    return Prepared(images, labels, true_labels, indices, train.class_names, source, names)


def fingerprint(train: OfficialSet) -> str:
    """A digest of the labels, which differs between versions and orders of a data set."""
    return hashlib.sha256(np.ascontiguousarray(train.labels, "<i8").tobytes()).hexdigest()[:16]


def lesson(cell: Cell, prepared: Prepared, folder: Path, scores: tuple[str, ...] = ("aum",)) -> Lesson:
    """How the cell's data are trained on."""
    study, num_classes, num_train = cell.study, len(prepared.class_names), len(prepared.true_labels)
    is_flipped = prepared.is_flipped
    known = Known(
        noise_rate=cell.rate,
        pattern="asymmetric" if cell.noise == "asymmetric" else "uniform",
        is_clean=~is_flipped,
        trusted=np.random.default_rng(cell.seed).permutation(num_train)[: int(TRUSTED_SHARE * num_train)],
        true_labels=prepared.true_labels,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return Lesson(
        plan=network_plan(study, prepared),
        labels=prepared.labels,
        rows=np.arange(num_train),
        num_classes=num_classes,
        budget=study.budget,
        seed=cell.option("training_seed", cell.seed),
        known=known.only(RECIPES[cell.recipe].needs),  # a recipe is told only what the tables say it needs
        scores=scores,
        folder=folder,
        on_epoch=partial(_say, cell),
    )


def _say(cell: Cell, stage: str, epoch: int, epochs: int) -> None:
    """Show a cell's progress on a terminal: it may take hours."""
    if sys.stderr.isatty():
        print(f"\r\033[K{cell}: {stage} {epoch}/{epochs}", end="\r", file=sys.stderr, flush=True)  # noqa: T201


def network_plan(study: Study, prepared: Prepared) -> NetworkPlan:
    """The study's network for these images."""
    _, height, width, channels = prepared.images.shape
    side = SIDE if study.augmentation == "scaled crops" else min(height, width)
    spread = SPREADS.get(study.data, PHOTOS if channels == 3 else PLAIN)
    make = partial(_network, study.model, channels, side, spread)
    pixels = prepared.images if isinstance(prepared.images, Pixels) else torch.from_numpy(prepared.images)
    return NetworkPlan(study.model, make, (pixels,), study.budget, _augmentation(study, side), precision(study))


def precision(study: Study) -> Literal["no", "bf16"]:
    """What this machine trains in: mixed precision means bf16 where it is faster than single precision."""
    return "bf16" if study.precision == "mixed" and _has_bf16() else "no"


def _has_bf16() -> bool:
    """Whether there are instructions for bf16. Other processors emulate it, slower than single precision."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check is not None and check() for check in checks)


def _network(name: str, channels: int, side: int, spread: Spread, num_outputs: int) -> nn.Module:
    make = row(name).make
    if make is None:
        raise InputError(f"{name} is not a network for images that is trained from scratch")
    return nn.Sequential(Centre(side), Standardised(make(num_outputs, channels=channels, side=side), spread))


def _augmentation(study: Study, side: int) -> Augment | None:
    if study.augmentation == "none":
        return None
    if study.augmentation == "scaled crops":
        return ScaledCrops(side)
    return Augmentation(pixels=side // 8, flips=True)  # 4 of 32 pixels, 8 of 64


def official_training_set(study: Study, root: Path) -> OfficialSet:
    """All samples of the study's classes, as published."""
    if study.data == "digits":
        digits = load_digits()
        whole = OfficialSet(digits.train_images, digits.train_labels, DIGITS)
    else:
        whole = official.load(study.data, root)
    return _of_classes(study, whole)


def _official_test_set(study: Study, root: Path) -> OfficialSet:
    if study.data == "digits":
        digits = load_digits()
        whole = OfficialSet(digits.test_images, digits.test_labels, DIGITS)
    else:
        splits = official.OFFICIAL[study.data].splits
        whole = official.load(study.data, root, "test" if "test" in splits else "val")
    return _of_classes(study, whole)


def _of_classes(study: Study, whole: OfficialSet) -> OfficialSet:
    """The number of classes that the study has, spread evenly over the list of them."""
    number = len(whole.class_names)
    if study.num_classes is None or study.num_classes == number:
        return whole
    if number < study.num_classes:
        raise InputError(
            f"{study.data} has {number} classes here, this preset needs {study.num_classes}; "
            "get all of it, or choose another preset"
        )
    chosen = np.arange(study.num_classes) * number // study.num_classes
    places = np.full(number, -1)
    places[chosen] = np.arange(len(chosen))
    part = whole.subset(np.flatnonzero(places[whole.labels] >= 0))
    names = [whole.class_names[one] for one in chosen]
    return OfficialSet(part.images, places[part.labels], names, found=whole.found, names=part.names)


def _joined(train: OfficialSet, test: OfficialSet) -> OfficialSet:
    labels = np.concatenate([train.labels, test.labels])
    if isinstance(train.images, np.ndarray) and isinstance(test.images, np.ndarray):
        return OfficialSet(np.concatenate([train.images, test.images]), labels, train.class_names)
    images = Joined(train.images, test.images)  # type: ignore[arg-type]
    return OfficialSet(images, labels, train.class_names, found=train.found)
