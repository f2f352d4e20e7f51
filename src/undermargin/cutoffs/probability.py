"""P(mislabeled) of every sample, from all runs of a scan together.

Threshold samples are judged by their held-out predictions. For all other samples the network has seen the label, which
pulls the prediction towards it: their margins are first translated into held-out ones. Threshold samples are drawn at
random, so both kinds of margins have the same distribution but for that pull, and equal ranks mean equal margins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs.noise_model import Floats, Labels, NoiseModel, fit, log_probabilities, margins
from undermargin.errors import IdentifyError
from undermargin.tracking.run import Run

NUM_ALTERNATIVES = 3
BLOCK = 1 << 16  # samples handled together
FEW_HELD_OUT = 10  # held-out samples of a class; with fewer and none predicted, the class was not learned


@dataclass(frozen=True, eq=False)
class Judgment:
    """What the runs say about every label."""

    log_odds: Floats  # (samples,) that the label is wrong; nan: neither trained on nor held out
    alternatives: Labels  # (samples, alternatives) other classes, most likely first; -1: none
    alternative_shares: npt.NDArray[np.float32]  # (samples, alternatives) their probabilities
    model: NoiseModel
    unlearned: list[int]  # classes that the network never predicts, so their samples cannot be judged


def judge(runs: Sequence[Run]) -> Judgment:
    """Log odds that each label is wrong, averaged over the runs, and the likeliest other classes."""
    labels, num_classes = _labels(runs)
    held_out = [np.flatnonzero(run.is_threshold & ~np.isnan(run.scores)) for run in runs]
    evidence = [_evidence(run, rows) for run, rows in zip(runs, held_out, strict=True)]
    together, their_labels = np.concatenate(evidence), labels[np.concatenate(held_out)]
    if not len(together):
        raise IdentifyError("none of the threshold samples was observed: there is no held-out prediction to learn from")
    model = fit(together, their_labels)
    odds, counts = np.zeros(len(labels)), np.zeros(len(labels))
    classes = np.zeros((len(labels), num_classes), np.float32)
    for run, rows, own in zip(runs, held_out, evidence, strict=True):
        for some, moved in (*_translated(run, labels, margins(own, labels[rows])), (rows, own)):
            odds[some] += model.log_odds(moved, labels[some])
            classes[some] += model.true_classes(moved, labels[some])
            counts[some] += 1
    counts[counts == 0] = np.nan
    odds /= counts
    classes /= counts[:, None]
    unlearned = _unlearned(together, their_labels, num_classes)
    odds[np.isin(labels, unlearned)] = np.minimum(odds[np.isin(labels, unlearned)], -1e-9)
    return Judgment(odds, *_alternatives(classes, labels), model, unlearned)


def _labels(runs: Sequence[Run]) -> tuple[Labels, int]:
    for run in runs:
        if run.probabilities is None:
            raise IdentifyError(
                "a run has no mean probabilities, which the cutoff 'probability' needs; track them with "
                "Tracker(n, probabilities=num_classes), or choose another cutoff, such as 'paper'"
            )
        if not run.has_threshold:
            raise IdentifyError(
                "a run has no threshold samples, which the cutoff 'probability' needs: train with folds()"
            )
    first = runs[0]
    if first.labels is None or first.probabilities is None:
        raise IdentifyError("the runs have no labels, which the cutoff 'probability' needs; use tracker.run(fold)")
    return first.labels, first.probabilities.shape[1]


def _evidence(run: Run, rows: Labels) -> Floats:
    assert run.probabilities is not None  # noqa: S101 - checked in _labels
    return log_probabilities(run.probabilities[rows])


def _translated(run: Run, labels: Labels, held_out: Floats) -> Iterator[tuple[Labels, Floats]]:
    """Judged samples, block by block, with the label's log probability moved to where it would be if held out."""
    judged = np.flatnonzero(run.judged)
    blocks = [judged[start : start + BLOCK] for start in range(0, len(judged), BLOCK)]
    own = [margins(_evidence(run, rows), labels[rows]) for rows in blocks]
    if not blocks:
        return
    targets = _same_rank(np.concatenate(own), held_out)
    start = 0
    for rows, margin in zip(blocks, own, strict=True):
        moved = _evidence(run, rows)
        moved[np.arange(len(rows)), labels[rows]] += targets[start : start + len(rows)] - margin
        start += len(rows)
        yield rows, moved


def _same_rank(values: Floats, others: Floats) -> Floats:
    """For each value, the number that has the same rank among the others.

    >>> _same_rank(np.array([5.0, 7.0, 6.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / len(values)
    return np.interp(ranks, (np.arange(len(others)) + 0.5) / len(others), np.sort(others))


def _unlearned(evidence: Floats, labels: Labels, num_classes: int) -> list[int]:
    """Rare classes of which no held-out sample is predicted: a small class must not be flagged as a whole."""
    counts = np.bincount(labels, minlength=num_classes)
    hits = np.bincount(labels[evidence.argmax(1) == labels], minlength=num_classes)
    return [int(label) for label in np.flatnonzero((counts < FEW_HELD_OUT) & (hits == 0))]


def _alternatives(classes: npt.NDArray[np.float32], labels: Labels) -> tuple[Labels, npt.NDArray[np.float32]]:
    """The likeliest other classes, and their probabilities: (samples, alternatives) twice."""
    shares = classes.copy()
    shares[np.arange(len(labels)), labels] = -1
    size = min(NUM_ALTERNATIVES, shares.shape[1] - 1)
    top = np.argpartition(-shares, size - 1, axis=1)[:, :size]
    found = np.take_along_axis(shares, top, 1)
    order = np.argsort(-found, axis=1, kind="stable")
    top, found = np.take_along_axis(top, order, 1), np.take_along_axis(found, order, 1)
    is_known = ~np.isnan(found)
    return np.where(is_known, top, -1), np.where(is_known, found, np.nan).astype(np.float32)
