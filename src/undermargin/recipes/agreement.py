"""The score of recipes that have none of their own: how well the finished network agrees with the labels."""

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from undermargin.recipes.lesson import Lesson
from undermargin.training.network import Training


def agreement(lesson: Lesson, training: Training) -> npt.NDArray[np.float64]:
    """Minus the finished network's loss on every training sample: (samples,)."""
    log_probabilities = log_softmax(training.predict(lesson.rows).astype(np.float64), axis=1)
    return np.asarray(log_probabilities[np.arange(len(lesson.rows)), lesson.labels[lesson.rows]])
