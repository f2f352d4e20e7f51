"""CTRL: loss curves are clustered within every class; remove the cluster that is learned last, train again
(Yue and Jha 2022)."""

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

MAX_COMPARED = 1000  # curves of a class in a silhouette, whose cost grows with their square


@dataclass(frozen=True)
class Clustering:
    """One way to cluster; which one is used is chosen by how well its clusters are separated."""

    num_clusters: int
    num_noisy: int  # clusters, those of the largest losses, that a window takes for mislabeled
    num_windows: int  # of equal length, each clustered alone
    min_clean: int  # windows that must take a sample for clean to keep it


@dataclass(frozen=True)
class Ctrl:
    """What is tried; the authors' choices."""

    smoothing: int = 5  # epochs in a moving average
    num_clusters: tuple[int, ...] = (2, 3)
    num_windows: tuple[int, ...] = (1, 2, 4)

    def fit(self, lesson: Lesson) -> Fitted:
        """Record every loss of a standard training; then train without the flagged."""
        curves = LossCurves(len(lesson.labels), lesson.budget.epochs)
        training, _ = lesson.train("watching", curves)
        labels = lesson.labels[lesson.rows]
        is_learned = training.predict(lesson.rows).argmax(1) == labels
        losses = prepared(lesson.own(curves.losses), lesson.num_classes, self.smoothing)
        chosen = self.choose(losses, labels, is_learned, seed=lesson.seed)
        fitted = trained_without(lesson, "ctrl", verdicts(losses, labels, chosen, seed=lesson.seed))
        return replace(fitted, notes=(f"chosen by the clusters' separation: {chosen}",))

    def choose(self, losses: Curves, labels: Labels, is_learned: Mask, *, seed: int) -> Clustering:
        """The clustering with the largest silhouette x accuracy on the kept x ratio of the last losses."""
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
    """Cross-entropy that remembers every sample's loss at every epoch: (samples, epochs), 0 where never shown."""

    def __init__(self, num_samples: int, num_epochs: int) -> None:
        self.losses = torch.zeros(num_samples, num_epochs)

    def loss(self, step: Step) -> Tensor:
        """The batch's mean."""
        losses = F.cross_entropy(step.outputs, step.labels, reduction="none")
        self.losses = self.losses.to(losses.device)
        self.losses[step.indices, step.epoch] = losses.detach()
        return losses.mean()

    def tensors(self) -> dict[str, Tensor]:
        """The curves."""
        return {"losses": self.losses}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The curves."""
        self.losses = tensors["losses"]


def prepared(losses: Curves, num_classes: int, smoothing: int) -> Curves:
    """Losses of at most 2 log(classes), averaged over the last epochs: (samples, epochs); the first epochs, which have
    not enough before them, get the first average."""
    clamped = np.nan_to_num(losses, nan=np.inf).clip(max=2 * np.log(num_classes))
    size = min(smoothing, losses.shape[1])
    means = np.lib.stride_tricks.sliding_window_view(clamped, size, axis=1).mean(2)
    return np.concatenate([np.repeat(means[:, :1], size - 1, axis=1), means], axis=1)


def cluster_ranks(
    losses: Curves, labels: Labels, num_clusters: int, num_windows: int, *, seed: int
) -> npt.NDArray[np.int64]:
    """The cluster of each sample among its class's in each window, 0 for the one of the largest losses:
    (samples, windows); `num_clusters`, which is never noisy, where a class has fewer curves than clusters."""
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
    """How good a split looks that nobody can check: the larger the better; minus infinity if it is none."""
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
    """Of one class; None if all its samples are on one side."""
    from sklearn.metrics import silhouette_score

    some = np.random.default_rng(0).permutation(len(losses))[:MAX_COMPARED]
    num_groups = len(np.unique(is_clean[some]))
    return float(silhouette_score(losses[some], is_clean[some])) if 2 <= num_groups < len(some) else None


def verdicts(losses: Curves, labels: Labels, chosen: Clustering, *, seed: int) -> Verdicts:
    """Flagged if too few windows take a sample for clean; among equals, those with the larger losses first."""
    ranks = cluster_ranks(losses, labels, chosen.num_clusters, chosen.num_windows, seed=seed)
    votes = (ranks >= chosen.num_noisy).sum(1)
    mean = losses.mean(1)
    ties = 0.5 * mean / max(mean.max(), 1e-10)  # less than a vote
    return identify(Run(scores=votes - ties, labels=labels, score="ctrl"), chosen.min_clean - 0.75)
