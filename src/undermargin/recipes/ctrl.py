"""CTRL: cluster the loss curves of every class, remove the cluster that is learned last, retrain (Yue and Jha 2022)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, Mask, trained_without
from undermargin.tracking.run import Run
from undermargin.training.objective import Objective, Step
from undermargin.verdicts.identify import identify
from undermargin.verdicts.record import Verdicts

Labels = npt.NDArray[np.int64]
Curves = npt.NDArray[np.float64]

MAX_COMPARED = 1000  # curves per class in a silhouette score, whose cost is quadratic


@dataclass(frozen=True)
class Clustering:
    """One candidate clustering. `Ctrl.choose` selects the candidate whose clusters are best separated."""

    num_clusters: int
    num_noisy: int  # number of clusters, those with the largest losses, that count as mislabeled
    num_windows: int  # windows of equal length, clustered separately
    min_clean: int  # number of windows that must call a sample clean for it to be kept


@dataclass(frozen=True)
class Ctrl:
    """The candidates to try; the defaults are the authors'."""

    smoothing: int = 5  # length of the moving average, in epochs
    num_clusters: tuple[int, ...] = (2, 3)
    num_windows: tuple[int, ...] = (1, 2, 4)

    def fit(self, lesson: Lesson) -> Fitted:
        """Record the losses of a standard training, then train without the flagged samples."""
        curves = LossCurves(len(lesson.labels), lesson.budget.epochs)
        training, _ = lesson.train("watching", curves)
        labels = lesson.labels[lesson.rows]
        is_learned = training.predict(lesson.rows).argmax(1) == labels
        losses = prepared(lesson.own(curves.losses), lesson.num_classes, self.smoothing)
        chosen = self.choose(losses, labels, is_learned, seed=lesson.seed)
        fitted = trained_without(lesson, "ctrl", verdicts(losses, labels, chosen, seed=lesson.seed))
        return replace(fitted, notes=(f"best separated clustering: {chosen}",))

    def choose(self, losses: Curves, labels: Labels, is_learned: Mask, *, seed: int) -> Clustering:
        """The clustering with the largest product of silhouette, accuracy on kept samples and ratio of final losses."""
        best, best_quality = Clustering(2, 1, 1, 1), -np.inf
        for num_clusters, num_windows in product(self.num_clusters, self.num_windows):
            if num_windows > losses.shape[1]:
                continue
            ranks = cluster_ranks(losses, labels, num_clusters, num_windows, seed=seed)
            for num_noisy, min_clean in product(range(1, num_clusters), range(1, num_windows // 2 + 2)):
                is_clean = (ranks >= num_noisy).sum(1) >= min_clean
                quality = separation(losses, labels, is_clean, is_learned)
                if quality > best_quality:
                    best, best_quality = Clustering(num_clusters, num_noisy, num_windows, min_clean), quality
        return best


class LossCurves(Objective):
    """Cross-entropy that records the loss of every sample at every epoch: (samples, epochs), 0 if never shown."""

    def __init__(self, num_samples: int, num_epochs: int) -> None:
        self.losses = torch.zeros(num_samples, num_epochs)

    def loss(self, step: Step) -> Tensor:
        """Mean loss of the batch."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        self.losses = self.losses.to(losses.device)
        self.losses[step.indices, step.epoch] = losses.detach()
        return losses.mean()

    def tensors(self) -> dict[str, Tensor]:
        """The curves, for a checkpoint."""
        return {"losses": self.losses}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the curves."""
        self.losses = tensors["losses"]


def prepared(losses: Curves, num_classes: int, smoothing: int) -> Curves:
    """Losses clipped at 2 log(classes) and smoothed by a trailing moving average: (samples, epochs).

    The first epochs, which have too few before them, get the first full average.
    """
    clamped = np.nan_to_num(losses, nan=np.inf).clip(max=2 * np.log(num_classes))
    size = min(smoothing, losses.shape[1])
    means = np.lib.stride_tricks.sliding_window_view(clamped, size, axis=1).mean(2)
    return np.concatenate([np.repeat(means[:, :1], size - 1, axis=1), means], axis=1)


def cluster_ranks(
    losses: Curves, labels: Labels, num_clusters: int, num_windows: int, *, seed: int
) -> npt.NDArray[np.int64]:
    """The cluster of each sample within its class in each window, 0 for the largest losses: (samples, windows).

    Classes with fewer distinct curves than clusters get `num_clusters`, which never counts as noisy.
    """
    from sklearn.cluster import KMeans

    ranks = np.full((len(losses), num_windows), num_clusters)
    for window, part in enumerate(np.array_split(losses, num_windows, axis=1)):
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            if len(np.unique(part[members], axis=0)) < num_clusters:
                continue
            fitted = KMeans(num_clusters, n_init=1, random_state=seed).fit(part[members])
            by_loss = np.argsort(-fitted.cluster_centers_.sum(1))
            ranks[members, window] = np.argsort(by_loss)[fitted.labels_]
    return ranks


def separation(losses: Curves, labels: Labels, is_clean: Mask, is_learned: Mask) -> float:
    """Quality of a split, computed without true labels; higher is better, -inf if all samples are on one side."""
    if is_clean.all() or not is_clean.any():
        return -np.inf
    classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    silhouettes = [_silhouette(losses[members], is_clean[members]) for members in classes]
    accuracies = [is_learned[members][is_clean[members]].mean() for members in classes if is_clean[members].any()]
    last = losses[:, -1]
    ratio = last[~is_clean].mean() / max(last[is_clean].mean(), 1e-10)
    known = [value for value in silhouettes if value is not None]
    return float(np.mean(known) * np.mean(accuracies) * ratio) if known else -np.inf


def _silhouette(losses: Curves, is_clean: Mask) -> float | None:
    """Silhouette score of one class; None if all its samples are on one side."""
    from sklearn.metrics import silhouette_score

    some = np.random.default_rng(0).permutation(len(losses))[:MAX_COMPARED]
    num_groups = len(np.unique(is_clean[some]))
    return float(silhouette_score(losses[some], is_clean[some])) if 2 <= num_groups < len(some) else None


def verdicts(losses: Curves, labels: Labels, chosen: Clustering, *, seed: int) -> Verdicts:
    """Flags samples that too few windows call clean; ties are ordered by mean loss, largest first."""
    ranks = cluster_ranks(losses, labels, chosen.num_clusters, chosen.num_windows, seed=seed)
    votes = (ranks >= chosen.num_noisy).sum(1)
    mean = losses.mean(1)
    ties = 0.5 * mean / max(mean.max(), 1e-10)  # smaller than one vote
    return identify(Run(scores=votes - ties, labels=labels, score="ctrl"), chosen.min_clean - 0.75)
