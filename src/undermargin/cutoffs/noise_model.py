"""How labels go wrong, estimated from held-out predictions: a transition matrix, a noise rate, and its interval.

A threshold sample is trained with the extra label, so the network never sees its real one: its probabilities over the
real classes are a held-out prediction (docs/beyond-the-paper.md). Two things make a held-out label disagree with the
prediction. The label is wrong, or the network is. The network's own errors are feeble: they happen where two classes
are nearly as likely. So the probabilities are sharpened into a belief about the true class, and what the belief does
not explain is explained by a transition matrix P(label | true class), fitted by expectation maximization.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

# How far probabilities are sharpened. Picked among some two hundred settings by their figures on the development sets
# of docs/quality.md, and not confirmed on other data with wrong labels yet: a network that is sure of most
# samples is believed more, and one that is sure of none is held back by noise, not by hard samples.
SHARPNESS = 3.5
SURE = 3.0  # a gap between the two most likely classes, in log odds: e^3 is 20 to 1
LEAST_SHARPNESS = 0.7  # of SHARPNESS, for a network whose surest samples are less than sure
UNSURE = 2.0  # below this gap, sharpness grows with the square of what is missing
SUREST = 0.9  # the quantile of the gaps that stands for the surest samples
# A network that is sure of many samples and still contradicts many labels is right more often than its gaps say: wrong
# labels near a boundary have made it unsure there. It is sharpened up to four times as far.
MORE_SHARPNESS = 3.0
CONTESTED = (0.08, 0.16)  # noise rates between which this sets in
VERY_SURE = (3.2, 3.8)  # and gaps of the surest samples

ROW_SAMPLES = 30.0  # a row of the transition matrix with this many samples is half its own, half the average
CLEAN_SAMPLES = 19.0  # this many correct labels are assumed beforehand: no noise is found in a handful of samples
STEPS = 60
LEAST_PROBABILITY = 1e-6
MOST_NUMBERS = 1 << 22  # samples x classes that are fitted; more do not change the estimate

CALIBRATED = 1.2  # sharpness at which a network trained on right labels explains its own errors: the least noise
NORMAL_90 = 1.645  # two-sided 90 %
UNSEEN = 1.15  # wrong labels that the network has learned do not disagree with it: allow for this share more


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """What held-out predictions say about the labels of a data set."""

    sharpness: float
    log_prior: Floats  # (classes,) how frequent each label is
    transition: Floats  # (classes, classes) P(label | true class)
    rate: float  # estimated share of wrong labels
    interval: tuple[float, float]  # 90 %, the uncertainty about the network's own errors included
    disagreement: float  # share of held-out labels that are not the most likely class
    skill: float  # how much better than class frequencies held-out labels are predicted: 0 no better, 1 perfect
    skill_error: float  # its standard error
    num_held_out: int

    @property
    def can_tell(self) -> bool:
        """Whether held-out labels are predicted better than by class frequencies."""
        return self.skill > self.skill_error

    def log_odds(self, evidence: Floats, labels: Labels) -> Floats:
        """Log odds that each label is wrong, from log probabilities (samples, classes): (samples,)."""
        joint = self._joint(evidence, labels)
        rows = np.arange(len(labels))
        is_right = joint[rows, labels]
        joint[rows, labels] = -np.inf
        return np.asarray(logsumexp(joint, axis=1) - is_right)

    def true_classes(self, evidence: Floats, labels: Labels) -> Floats:
        """Probability of each true class given prediction and label: (samples, classes)."""
        joint = self._joint(evidence, labels)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def _joint(self, evidence: Floats, labels: Labels) -> Floats:
        belief = _belief(evidence, self.log_prior, self.sharpness)
        return belief + np.log(np.maximum(self.transition[:, labels].T, 1e-12))


def fit(evidence: Floats, labels: Labels) -> NoiseModel:
    """The noise model of held-out log probabilities (samples, classes) and the labels they should predict."""
    evidence, labels = _sorted_by_label(*_few_enough(evidence, labels))
    num_samples, num_classes = evidence.shape
    counts = np.bincount(labels, minlength=num_classes)
    log_prior = np.log((counts + 1) / (num_samples + num_classes))
    surest = _surest_gap(evidence, labels)
    sharpness = _sharpness(surest)
    transition, rate = _rate_at(sharpness, evidence, labels, log_prior)
    more = MORE_SHARPNESS * _ramp(rate, CONTESTED) * _ramp(surest, VERY_SURE)
    if more > 0:
        sharpness *= 1 + more
        transition, rate = _rate_at(sharpness, evidence, labels, log_prior)
    predicted = evidence.argmax(1)
    skill, skill_error = _skill(predicted, labels, num_classes)
    disagreement = float((predicted != labels).mean())
    fewest = min(_rate_at(min(CALIBRATED, sharpness), evidence, labels, log_prior)[1], rate)
    most = max(disagreement, rate)
    return NoiseModel(
        sharpness=sharpness,
        log_prior=log_prior,
        transition=transition,
        rate=rate,
        interval=(
            max(0.0, fewest - NORMAL_90 * _error(fewest, num_samples) - 0.5 / num_samples),
            min(1.0, UNSEEN * (most + NORMAL_90 * _error(most, num_samples))),
        ),
        disagreement=disagreement,
        skill=skill,
        skill_error=skill_error,
        num_held_out=num_samples,
    )


def log_probabilities(probabilities: npt.NDArray[np.floating]) -> Floats:
    """Logarithms of probabilities, bounded below: (samples, classes)."""
    return np.log(np.maximum(np.asarray(probabilities, np.float64), LEAST_PROBABILITY))


def margins(evidence: Floats, labels: Labels) -> Floats:
    """Log probability of the label minus that of the most likely other class: (samples,)."""
    rows = np.arange(len(labels))
    others = evidence.copy()
    others[rows, labels] = -np.inf
    return np.asarray(evidence[rows, labels] - others.max(1))


def _few_enough(evidence: Floats, labels: Labels) -> tuple[Floats, Labels]:
    most = max(MOST_NUMBERS // evidence.shape[1], 1)
    if len(labels) <= most:
        return evidence, labels
    chosen = np.random.default_rng(0).choice(len(labels), most, replace=False)
    return evidence[chosen], labels[chosen]


def _sorted_by_label(evidence: Floats, labels: Labels) -> tuple[Floats, Labels]:
    order = np.argsort(labels, kind="stable")
    return evidence[order], labels[order]


def _surest_gap(evidence: Floats, labels: Labels) -> float:
    """Log odds between the two most likely classes, for the samples that the network is surest about."""
    top = np.partition(evidence, -2, axis=1)[:, -2:]
    gaps = top[:, 1] - top[:, 0]
    agrees = evidence.argmax(1) == labels
    return max(float(np.quantile(gaps[agrees] if agrees.sum() > 5 else gaps, SUREST)), 0.1)


def _sharpness(surest: float) -> float:
    """How far to sharpen probabilities, from how sure the network is where it is surest."""
    believed = min(1.0, max(surest / SURE, LEAST_SHARPNESS))
    return SHARPNESS * believed * max(1.0, (UNSURE / surest) ** 2)


def _ramp(value: float, ends: tuple[float, float]) -> float:
    """0 below the first end, 1 above the second, and a line between them."""
    low, high = ends
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _belief(evidence: Floats, log_prior: Floats, sharpness: float) -> Floats:
    """Log probability of each true class before the label is seen: (samples, classes).

    What is sharpened is how much likelier a class is than its frequency, so rare classes are not sharpened away.
    """
    raised = sharpness * (evidence - log_prior) + log_prior
    return np.asarray(raised - logsumexp(raised, axis=1, keepdims=True))


def _rate_at(sharpness: float, evidence: Floats, labels: Labels, log_prior: Floats) -> tuple[Floats, float]:
    """The transition matrix and the noise rate at a given sharpness; labels are sorted."""
    belief = np.exp(_belief(evidence, log_prior, sharpness))
    num_samples, num_classes = belief.shape
    present, starts = np.unique(labels, return_index=True)
    off_diagonal = 1 - np.eye(num_classes)
    noise = 0.05
    transition = _spread(noise, num_classes)
    for _ in range(STEPS):
        shares = belief * transition[:, labels].T
        shares /= np.maximum(shares.sum(1, keepdims=True), 1e-300)
        counts = np.zeros((num_classes, num_classes))
        counts[:, present] = np.add.reduceat(shares, starts, axis=0).T
        noise = float((counts * off_diagonal).sum() / (num_samples + CLEAN_SAMPLES))
        average = _spread(noise, num_classes)
        transition = (counts + ROW_SAMPLES * average) / (counts.sum(1, keepdims=True) + ROW_SAMPLES)
    shares = belief * transition[:, labels].T
    right = shares[np.arange(num_samples), labels] / np.maximum(shares.sum(1), 1e-300)
    return transition, float(1 - right.mean())


def _spread(noise: float, num_classes: int) -> Floats:
    """A transition matrix with this noise rate in every class, spread evenly."""
    matrix = np.full((num_classes, num_classes), noise / (num_classes - 1))
    np.fill_diagonal(matrix, 1 - noise)
    return matrix


def _skill(predicted: Labels, labels: Labels, num_classes: int) -> tuple[float, float]:
    """Cohen's kappa of predictions and labels, and its standard error."""
    num_samples = len(labels)
    agreed = float((predicted == labels).mean())
    shares = [np.bincount(values, minlength=num_classes) / num_samples for values in (predicted, labels)]
    rest = max(1 - float(shares[0] @ shares[1]), 1e-9)
    return (agreed - 1 + rest) / rest, _error(agreed, num_samples) / rest


def _error(share: float, number: int) -> float:
    """Standard error of a share."""
    return float(np.sqrt(share * (1 - share) / number + 0.25 / number**2))
