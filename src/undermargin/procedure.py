"""Folds: which samples get the extra label, and the choices of the procedure in one record."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Labels = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NUM_FOLDS = 2
MOST_HELD_OUT = 0.2  # share of the samples that are threshold samples in one fold, where there are more than two folds


@dataclass(frozen=True)
class Procedure:
    """The choices of the procedure, with three presets.

    `Procedure.paper` follows the paper's text, `Procedure.reference` the authors' code where the two differ, and
    `Procedure.default` is what `scan` uses.
    """

    # threshold samples per fold: N / (classes + 1) ("outputs"), N / classes ("classes"), or the largest share ("share")
    threshold_size: Literal["outputs", "classes", "share"] = "outputs"
    max_threshold_share: float = 1.0  # upper bound, as a share of the samples, per fold
    is_balanced: bool = False  # take the same share of every class as threshold samples
    skip_epochs: int = 0  # epochs at the start that are left out of the average
    percentile: float = 99.0  # of the threshold samples' scores
    is_strict: bool = False  # flag samples below the cutoff only, not those equal to it
    shares_seed: bool = False  # both folds start from the same weights and use the same batch order
    epochs: int | None = None  # per fold; None: chosen from the data, with early stopping once the ranking settles
    # the default cutoff of scan; not in the repr, which is part of the key of stored results of recipes
    chosen_cutoff: Literal["percentile", "probability"] = field(default="percentile", repr=False)
    num_folds: int = field(default=NUM_FOLDS, repr=False)

    paper: ClassVar["Procedure"]
    reference: ClassVar["Procedure"]
    default: ClassVar["Procedure"]

    @property
    def cutoff(self) -> str:
        """The default cutoff of a scan with this procedure: the name of a row of CUTOFFS."""
        return "probability" if self.chosen_cutoff == "probability" else self.percentile_cutoff

    @property
    def percentile_cutoff(self) -> str:
        """The row of CUTOFFS that uses the percentile of the threshold samples, strictly below it or not."""
        return "reference" if self.is_strict else "paper"

    def num_threshold_samples(self, num_samples: int, num_classes: int) -> int:
        """The number of threshold samples in one fold."""
        most = int(num_samples * self.max_threshold_share)
        if self.threshold_size == "share":
            return most
        return min(num_samples // (num_classes + (self.threshold_size == "outputs")), most)

    def with_folds(self, number: int) -> "Procedure":
        """The same procedure with another number of folds; more than two of them hold out up to a fifth each."""
        if number < 1:
            raise InputError(f"the number of folds is {number}, expected 1 or more")
        share = self.max_threshold_share if number <= NUM_FOLDS else min(MOST_HELD_OUT, 1 / number)
        return replace(self, num_folds=number, max_threshold_share=min(share, 1 / number))


Procedure.paper = Procedure(epochs=150)  # up to the first drop of the learning rate
Procedure.reference = Procedure(threshold_size="classes", skip_epochs=1, is_strict=True, shares_seed=True, epochs=150)
# a tenth whatever the number of classes: with two of them N / (c + 1) would be a third of the data, with a hundred of
# them too few to learn from what they say when they are held out
Procedure.default = Procedure(
    threshold_size="share", max_threshold_share=0.1, is_balanced=True, chosen_cutoff="probability"
)


@dataclass(frozen=True)
class Fold:
    """One training of the procedure: the labels to train on and the threshold samples."""

    number: int
    labels: Labels  # (samples,) the labels to train on: the extra label where is_threshold
    is_threshold: Mask  # (samples,)
    assigned_labels: Labels  # (samples,) the labels of the data set
    num_classes: int

    @property
    def num_outputs(self) -> int:
        """The number of outputs that the network needs: one per class and one for the extra label."""
        return self.num_classes + 1


def folds(
    labels: npt.ArrayLike, num_classes: int, *, seed: int = 0, procedure: Procedure = Procedure.paper
) -> list[Fold]:
    """The folds of a data set, with disjoint threshold samples: two unless the procedure says otherwise.

    With two folds or more, every sample is judged in at least one of them.

    >>> first, second = folds([0, 1, 2, 0, 1, 2, 0, 1], num_classes=3)
    >>> first.num_outputs, int(first.is_threshold.sum()), set(first.labels[first.is_threshold].tolist())
    (4, 2, {3})
    >>> bool((first.is_threshold & second.is_threshold).any())
    False
    """
    given = check_labels(labels, num_classes)
    size = procedure.num_threshold_samples(len(given), num_classes)
    rank = _balanced_ranks(given, size, seed) if procedure.is_balanced else _ranks(len(given), size, seed)
    return [_fold(number, given, rank // size == number, int(num_classes)) for number in range(procedure.num_folds)]


def threshold_samples(num_samples: int, num_classes: int, fold: int, *, seed: int = 0) -> Mask:
    """The samples that get the extra label in this fold (paper: threshold samples): (samples,) bool.

    Folds with the same seed are disjoint: a threshold sample of fold 0 is judged in fold 1.

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
    """Labels as an int64 array; raises `InputError` unless they are class numbers from 0 to num_classes - 1."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise InputError(
            f"labels have shape {given.shape} and dtype {given.dtype}, expected one integer per sample; "
            "encode class names as 0..num_classes-1 first"
        )
    if num_classes < 2:
        raise InputError(f"num_classes is {num_classes}, expected at least 2")
    if len(given) and not 0 <= given.min() <= given.max() < num_classes:
        raise InputError(
            f"labels range from {given.min()} to {given.max()}, expected 0..{num_classes - 1} "
            f"for num_classes={num_classes}"
        )
    return given.astype(np.int64)


def _ranks(num_samples: int, size: int, seed: int) -> Labels:
    """The ranks of the samples in a random order: (samples,)."""
    if size < 1:
        raise InputError(
            f"{num_samples} samples are too few to choose one threshold sample per fold; pass more samples"
        )
    return np.random.default_rng(seed).permutation(num_samples)


def _balanced_ranks(labels: Labels, size: int, seed: int) -> Labels:
    """Ranks in a random order in which every prefix has about the same share of each class: (samples,)."""
    shuffled = np.argsort(_ranks(len(labels), size, seed))
    in_order = labels[shuffled]
    by_class = np.argsort(in_order, kind="stable")
    counts = np.bincount(in_order)
    sizes, starts = counts[in_order[by_class]], (np.cumsum(counts) - counts)[in_order[by_class]]
    position = np.empty(len(labels))
    # relative position of each sample within its class, offset by half a step so that no class always comes first
    position[by_class] = (np.arange(len(labels)) - starts + 0.5) / sizes
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[shuffled[np.argsort(position, kind="stable")]] = np.arange(len(labels))
    return ranks


def _fold(number: int, given: Labels, is_threshold: Mask, num_classes: int) -> Fold:
    return Fold(number, np.where(is_threshold, num_classes, given), is_threshold, given, num_classes)


def trainings(labels: npt.ArrayLike, num_classes: int, *, seed: int, procedure: Procedure) -> list[tuple[Fold, int]]:
    """Each fold with the seed of its training: the same for all folds if the procedure shares it."""
    return [
        (fold, seed if procedure.shares_seed else seed * procedure.num_folds + fold.number)
        for fold in folds(labels, num_classes, seed=seed, procedure=procedure)
    ]
