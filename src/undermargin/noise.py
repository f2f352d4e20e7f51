"""Synthetic label noise. Every function returns a new array and is reproducible from its seed.

The rate is the share of samples whose label changes. By default, as in the paper, each sample is flipped with that
probability. With `is_exact=True` the expected number of samples per class is flipped, rounded to the nearest integer,
and the new labels are distributed as closely to their probabilities as integers allow.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.procedure import check_labels

Labels = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float64]


def uniform(
    labels: npt.ArrayLike,
    rate: float,
    num_classes: int,
    *,
    seed: int,
    include_true: bool = False,
    is_exact: bool = False,
) -> Labels:
    """Flip to any other class with equal probability; with `include_true`, the draw includes the original class.

    >>> labels = np.zeros(1000, dtype=int)
    >>> int((uniform(labels, 0.4, 10, seed=0, is_exact=True) != labels).sum())
    400
    """
    _check_rate(rate, num_classes)
    share = rate / num_classes if include_true else rate / (num_classes - 1)
    matrix = np.full((num_classes, num_classes), share)
    np.fill_diagonal(matrix, 1 - rate + share if include_true else 1 - rate)
    return _corrupt(labels, matrix, seed=seed, is_exact=is_exact)


def asymmetric(labels: npt.ArrayLike, rate: float, num_classes: int, *, seed: int, is_exact: bool = False) -> Labels:
    """Flip to the next class, and the last class to the first (the paper's asymmetric noise).

    >>> asymmetric([0, 1, 2], 1.0, 3, seed=0)
    array([1, 2, 0])
    """
    following = {label: (label + 1) % num_classes for label in range(num_classes)}
    return pairs(labels, rate, following, num_classes, seed=seed, is_exact=is_exact)


def pairs(
    labels: npt.ArrayLike,
    rate: float,
    confused_with: Mapping[int, int],
    num_classes: int,
    *,
    seed: int,
    is_exact: bool = False,
) -> Labels:
    """Flip each class in `confused_with` to its partner at the given rate; other classes stay clean.

    >>> pairs([0, 1, 2], 1.0, {2: 0}, 3, seed=0)
    array([0, 1, 0])
    """
    _check_rate(rate, num_classes)
    for label in (*confused_with, *confused_with.values()):
        if not 0 <= label < num_classes:
            raise InputError(f"confused_with contains class {label}, expected 0..{num_classes - 1}")
    matrix = np.eye(num_classes)
    for label, partner in confused_with.items():
        matrix[label, label] -= rate
        matrix[label, partner] += rate
    return _corrupt(labels, matrix, seed=seed, is_exact=is_exact)


def transition(labels: npt.ArrayLike, matrix: npt.ArrayLike, *, seed: int, is_exact: bool = False) -> Labels:
    """Draw each new label from the row of `matrix` for the old one, P(new | old): (classes, classes)."""
    probabilities = np.asarray(matrix, dtype=np.float64)
    size = len(probabilities) if probabilities.ndim else 0
    if probabilities.shape != (size, size) or (probabilities < 0).any():
        raise InputError(
            f"the matrix has shape {probabilities.shape}, expected a square matrix without negative entries"
        )
    if not np.allclose(probabilities.sum(1), 1, atol=1e-6):
        raise InputError(f"row {np.abs(probabilities.sum(1) - 1).argmax()} of the matrix does not sum to 1")
    return _corrupt(labels, probabilities, seed=seed, is_exact=is_exact)


def from_file(path: str | Path, labels: npt.ArrayLike, num_classes: int) -> Labels:
    """Labels for the same samples from a text file (one per line) or an .npy file, such as a second annotator's."""
    path = Path(path)
    try:
        loaded = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, dtype=np.int64)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as labels; expected one integer per line or an .npy array: {error}"
        ) from None
    other = check_labels(np.atleast_1d(loaded), num_classes)
    if len(other) != np.size(labels):
        raise InputError(f"{path} has {len(other)} labels for {np.size(labels)} samples; expected one per sample")
    return other


def _check_rate(rate: float, num_classes: int) -> None:
    if num_classes < 2:
        raise InputError(f"num_classes is {num_classes}, expected at least 2")
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate}, expected a number between 0 and 1")


def _corrupt(labels: npt.ArrayLike, matrix: Matrix, *, seed: int, is_exact: bool) -> Labels:
    given = check_labels(labels, len(matrix))
    rng = np.random.default_rng(seed)
    draws = rng.random(len(given))
    noisy = given.copy()
    for label, row in enumerate(matrix):
        members = np.flatnonzero(given == label)
        if is_exact:
            counts = _exact_counts(row, label, len(members), rng)
            noisy[rng.permutation(members)] = np.repeat(np.arange(len(row)), counts)
        else:
            # one draw per sample from its own row; rounding errors go to the last class
            drawn = np.searchsorted(row.cumsum(), draws[members], side="right")
            noisy[members] = drawn.clip(max=len(row) - 1)
    return noisy


def _exact_counts(row: Matrix, label: int, total: int, rng: np.random.Generator) -> Labels:
    """How many of the `total` samples of a class get each label: (classes,)."""
    others = np.where(np.arange(len(row)) == label, 0, row)
    num_flipped = int(total * others.sum() + 0.5)
    counts = _apportion(others / others.sum(), num_flipped, rng) if num_flipped else np.zeros(len(row), np.int64)
    counts[label] = total - num_flipped
    return counts


def _apportion(shares: Matrix, total: int, rng: np.random.Generator) -> Labels:
    """Integers that sum to `total` and are closest to `shares * total`; ties between remainders are random."""
    counts = np.floor(shares * total + 1e-9).astype(np.int64)
    remainders = shares * total - counts
    shuffled = rng.permutation(len(shares))
    largest = shuffled[np.argsort(-remainders[shuffled].round(9), kind="stable")]
    counts[largest[: total - counts.sum()]] += 1
    return counts
