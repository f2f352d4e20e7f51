"""FINE: the features of mislabeled samples are not aligned with their class (Kim et al. 2021)."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.tracking.run import Run
from undermargin.verdicts.identify import identify

Values = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

STEPS, TOLERANCE = 100, 1e-6  # of EM; the authors' settings


@dataclass(frozen=True)
class Fine:
    """Length of the warm-up training, and the probability above which a sample is kept."""

    warm_up: float = 1 / 3  # share of the epochs: 40 of the authors' 120
    least_probability: float = 0.5  # samples with a higher probability of the clean component are kept

    def fit(self, lesson: Lesson) -> Fitted:
        """Train briefly, judge samples by their features, then train without the flagged samples.

        The authors select again every 10 epochs while training continues. Here samples are selected once, so that FINE
        can be compared with other identifiers on equal terms.
        """
        epochs = max(1, round(self.warm_up * lesson.budget.epochs))
        training, _ = lesson.shortened(epochs).train("warm_up")
        features = training.features(lesson.rows).cpu().numpy().astype(np.float64)
        labels = lesson.labels[lesson.rows]
        scores = clean_probabilities(alignments(features, labels), labels)
        return trained_without(
            lesson, "fine", identify(Run(scores=scores, labels=labels, score="fine"), self.least_probability)
        )


def alignments(features: Values, labels: Labels) -> Values:
    """Absolute cosine between each sample's features and the main direction of its class: (samples,) from 0 to 1.

    The main direction is the first right-singular vector of the features (samples, features) of the class.
    """
    lengths = np.linalg.norm(features, axis=1)
    lines = np.zeros(len(features))
    for label in np.unique(labels):
        own = features[labels == label]
        main = np.linalg.eigh(own.T @ own).eigenvectors[:, -1]  # the same vector, computed from a smaller matrix
        lines[labels == label] = np.abs(own @ main)
    return lines / np.where(lengths > 0, lengths, 1)


def clean_probabilities(lines: Values, labels: Labels) -> Values:
    """Probability of the better aligned of two Gaussians, fitted separately for every class: (samples,).

    If all samples of a class are equally aligned, they all get probability 1.
    """
    probabilities = np.ones(len(lines))
    for label in np.unique(labels):
        own = lines[labels == label]
        if own.max() - own.min() > TOLERANCE:
            probabilities[labels == label] = _higher_of_two(own)
    return probabilities


def _higher_of_two(values: Values) -> Values:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    scaled = ((values - values.min()) / (values.max() - values.min()))[:, None]
    mixture = GaussianMixture(2, max_iter=STEPS, tol=TOLERANCE, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result of 100 steps is close enough
        mixture.fit(scaled)
    return np.asarray(mixture.predict_proba(scaled)[:, mixture.means_[:, 0].argmax()])
