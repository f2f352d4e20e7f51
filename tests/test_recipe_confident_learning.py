import sys

import numpy as np
import pytest

from tests.blobs import make_blobs, small
from undermargin import recipes
from undermargin.errors import InputError
from undermargin.recipes import Budget
from undermargin.recipes.confident_learning import ConfidentLearning, stratified


@pytest.fixture
def blobs(rng):
    return make_blobs(rng, 0.2)


def test_every_class_is_spread_over_the_folds(rng):
    labels = rng.integers(0, 3, 100)
    folds = stratified(labels, 5, seed=0)
    for label in range(3):
        counts = np.bincount(folds[labels == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert not np.array_equal(folds, stratified(labels, 5, seed=1))


def test_more_folds_than_samples_is_an_error():
    with pytest.raises(InputError, match="num_folds is 5 for 3 samples"):
        stratified(np.array([0, 1, 0]), 5, seed=0)


def confident(labels, true, num_classes, confidence=0.9):
    """A network that is right about everybody."""
    probabilities = np.full((len(labels), num_classes), (1 - confidence) / (num_classes - 1))
    probabilities[np.arange(len(labels)), true] = confidence
    return probabilities


def test_with_a_network_that_is_always_right_the_wrong_labels_are_flagged_and_come_first():
    true = np.arange(90) % 3
    labels = true.copy()
    labels[:9] = (true[:9] + 1) % 3
    verdicts = ConfidentLearning().verdicts(labels, confident(labels, true, 3))
    assert set(verdicts.flagged.tolist()) == set(range(9))
    assert set(verdicts.order[:9].tolist()) == set(range(9))
    np.testing.assert_allclose(verdicts.scores[:9], 0.05)  # how much the network believes the label
    assert verdicts.summary()["num_flagged"] == 9


def test_classes_that_nobody_has_are_left_out():
    true = np.repeat([0, 3], 30)
    labels = true.copy()
    labels[:3] = 3
    verdicts = ConfidentLearning().verdicts(labels, confident(labels, true, 5))
    assert set(verdicts.flagged.tolist()) == {0, 1, 2}
    assert not ConfidentLearning().verdicts(np.zeros(4, int), np.full((4, 2), 0.5)).is_flagged.any()


def test_the_wrong_labels_are_removed_and_the_network_is_trained_again(blobs):
    x, labels, true = blobs
    stages = []
    fitted = recipes.fit(
        (x, labels),
        recipe=ConfidentLearning(num_folds=2),
        model=small,
        budget=Budget(6, 32, learning_rate=0.05),
        on_epoch=lambda stage, epoch, epochs: stages.append(stage),
    )
    assert list(dict.fromkeys(stages)) == ["fold0", "fold1", "retraining"]
    assert (fitted.verdicts.is_flagged == (labels != true)).mean() > 0.95
    np.testing.assert_array_equal(np.isnan(fitted.scores["aum"]), fitted.verdicts.is_flagged)
    assert (fitted.predict(np.arange(180)).argmax(1) == true).mean() > 0.95


def test_without_cleanlab_it_says_what_to_install_before_it_trains(blobs, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    with pytest.raises(InputError, match=r'pip install "undermargin\[cleanlab\]"'):
        recipes.fit(blobs[:2], recipe="confident_learning", budget=Budget(10**9, 32))
