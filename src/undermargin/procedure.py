"""Who wears the extra label, and every choice of the procedure in one record."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Labels = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NUM_FOLDS = 2


@dataclass(frozen=True)
class Procedure:
    """The choices of a scan. Presets: `Procedure.paper`, `.reference` (the authors' code), `.default`."""

    # threshold samples: as many as an average class has, counting the extra one ("outputs") or not ("classes")
    threshold_size: Literal["outputs", "classes"] = "outputs"
    max_threshold_share: float = 1.0  # of the samples, in one fold
    is_balanced: bool = False  # the same share of every class wears the extra label
    skip_epochs: int = 0  # at the start, not averaged
    percentile: float = 99.0  # of the threshold samples' scores
    is_strict: bool = False  # flagged below the cutoff only, not at it
    shares_seed: bool = False  # both folds start from the same weights and batch order
    epochs: int | None = None  # of each fold; None: chosen from the data, and fewer once the ranking has settled
    # scan's, unless it is told another; not in the repr, by which results are known of recipes that have their own
    chosen_cutoff: Literal["percentile", "auto"] = field(default="percentile", repr=False)

    paper: ClassVar["Procedure"]
    reference: ClassVar["Procedure"]
    default: ClassVar["Procedure"]

    @property
    def cutoff(self) -> str:
        """The row of CUTOFFS that a scan is judged by if it is not told another."""
        return "auto" if self.chosen_cutoff == "auto" else self.percentile_cutoff

    @property
    def percentile_cutoff(self) -> str:
        """The row of CUTOFFS that is a percentile of the threshold samples, strictly below it or not."""
        return "reference" if self.is_strict else "paper"

    def num_threshold_samples(self, num_samples: int, num_classes: int) -> int:
        """How many samples wear the extra label in one fold."""
        outputs = num_classes + (self.threshold_size == "outputs")
        return min(num_samples // outputs, int(num_samples * self.max_threshold_share))


Procedure.paper = Procedure(epochs=150)  # all before the first drop of the learning rate
Procedure.reference = Procedure(threshold_size="classes", skip_epochs=1, is_strict=True, shares_seed=True, epochs=150)
# with two classes N / (c + 1) would turn a third of the data into threshold samples
Procedure.default = Procedure(max_threshold_share=0.1, is_balanced=True, chosen_cutoff="auto")


@dataclass(frozen=True)
class Fold:
    """One training of the procedure: the labels to train on, and who wears the extra one."""

    number: int
    labels: Labels  # (samples,) to train on: the extra label where is_threshold
    is_threshold: Mask  # (samples,)
    assigned_labels: Labels  # (samples,) as the data set has them
    num_classes: int

    @property
    def num_outputs(self) -> int:
        """What the network needs: the classes and the extra one."""
        return self.num_classes + 1


def folds(
    labels: npt.ArrayLike, num_classes: int, *, seed: int = 0, procedure: Procedure = Procedure.paper
) -> list[Fold]:
    """The two folds of a data set: every sample is judged in at least one of them.

    >>> first, second = folds([0, 1, 2, 0, 1, 2, 0, 1], num_classes=3)
    >>> first.num_outputs, int(first.is_threshold.sum()), set(first.labels[first.is_threshold].tolist())
    (4, 2, {3})
    >>> bool((first.is_threshold & second.is_threshold).any())
    False
    """
    given = check_labels(labels, num_classes)
    size = procedure.num_threshold_samples(len(given), num_classes)
    rank = _balanced_ranks(given, size, seed) if procedure.is_balanced else _ranks(len(given), size, seed)
    return [_fold(number, given, rank // size == number, int(num_classes)) for number in range(NUM_FOLDS)]


def threshold_samples(num_samples: int, num_classes: int, fold: int, *, seed: int = 0) -> Mask:
    """Who wears the extra label in this fold: (samples,) bool (paper: threshold samples).

    Folds of one seed are disjoint: a threshold sample of fold 0 is judged in fold 1.

    >>> first, second = (threshold_samples(100, 9, fold, seed=0) for fold in (0, 1))
    >>> int(first.sum()), int(second.sum()), bool((first & second).any())
    (10, 10, False)
    """
    if fold not in range(NUM_FOLDS):
        raise InputError(f"fold is {fold}, expected one of {list(range(NUM_FOLDS))}")
    size = Procedure.paper.num_threshold_samples(num_samples, num_classes)
    is_threshold: Mask = _ranks(num_samples, size, seed) // size == fold
    return is_threshold


def check_labels(labels: npt.ArrayLike, num_classes: int) -> Labels:
    """Labels as an int64 array, after making sure that they are class numbers."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise InputError(
            f"labels have shape {given.shape} and type {given.dtype}, expected one whole number a sample; "
            "encode names as 0..num_classes-1 first"
        )
    if num_classes < 2:
        raise InputError(f"there are {num_classes} classes; a label can only be wrong among two or more")
    if len(given) and not 0 <= given.min() <= given.max() < num_classes:
        raise InputError(
            f"labels run from {given.min()} to {given.max()}, expected 0..{num_classes - 1} "
            f"for num_classes={num_classes}"
        )
    return given.astype(np.int64)


def _ranks(num_samples: int, size: int, seed: int) -> Labels:
    """A random order: (samples,) ranks."""
    if size < 1:
        raise InputError(f"{num_samples} samples are too few: not one of them could wear the extra label in a fold")
    return np.random.default_rng(seed).permutation(num_samples)


def _balanced_ranks(labels: Labels, size: int, seed: int) -> Labels:
    """A random order in which every prefix holds about the same share of each class: (samples,) ranks."""
    shuffled = np.argsort(_ranks(len(labels), size, seed))
    in_order = labels[shuffled]
    by_class = np.argsort(in_order, kind="stable")
    counts = np.bincount(in_order)
    sizes, starts = counts[in_order[by_class]], (np.cumsum(counts) - counts)[in_order[by_class]]
    position = np.empty(len(labels))
    # how far through its class a sample comes; halfway marks, so that no class comes first by rule
    position[by_class] = (np.arange(len(labels)) - starts + 0.5) / sizes
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[shuffled[np.argsort(position, kind="stable")]] = np.arange(len(labels))
    return ranks


def _fold(number: int, given: Labels, is_threshold: Mask, num_classes: int) -> Fold:
    return Fold(number, np.where(is_threshold, num_classes, given), is_threshold, given, num_classes)


def trainings(labels: npt.ArrayLike, num_classes: int, *, seed: int, procedure: Procedure) -> list[tuple[Fold, int]]:
    """Each fold with the seed of its training: the same for both where the procedure says so."""
    return [
        (fold, seed if procedure.shares_seed else seed * NUM_FOLDS + fold.number)
        for fold in folds(labels, num_classes, seed=seed, procedure=procedure)
    ]
