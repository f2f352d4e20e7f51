"""Default score for recipes that define none: how well the trained network agrees with the labels."""

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from undermargin.recipes.lesson import Lesson
from undermargin.training.network import Training


def agreement(lesson: Lesson, training: Training) -> npt.NDArray[np.float64]:
    """The negative loss of the trained network on every training sample: (samples,)."""
    log_probabilities = log_softmax(training.predict(lesson.rows).astype(np.float64), axis=1)
    return np.asarray(log_probabilities[np.arange(len(lesson.rows)), lesson.labels[lesson.rows]])
