"""Data parameters: temperatures that grow where a label does not fit."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from torch.nn import functional as F

from undermargin import noise, recipes
from undermargin.errors import InputError
from undermargin.recipes import Budget
from undermargin.recipes.data_parameters import (
    CLASSES,
    JOINT,
    DataParameters,
    Heat,
    Temperatures,
    temperature_slopes,
)
from undermargin.training.objective import Step

BUDGET = Budget(epochs=4, batch_size=32, learning_rate=0.05)


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in three clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(240, n_features=4, centers=3, cluster_std=1.0, random_state=0)
    return x.astype(np.float32), noise.uniform(true_labels, 0.2, 3, seed=0), true_labels


def step(outputs, labels, indices):
    outputs, labels, indices = torch.tensor(outputs), torch.tensor(labels), torch.tensor(indices)
    return Step(outputs, labels, indices, 0, 0.0, torch.Generator(), lambda: outputs)


def test_slopes_are_the_derivatives_of_the_loss():
    logits, labels = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1])
    temperatures = torch.tensor([0.5, 1.0, 2.0, 3.0, 0.1], dtype=torch.float64, requires_grad=True)
    F.cross_entropy(logits / temperatures[:, None], labels, reduction="sum").backward()
    np.testing.assert_allclose(temperature_slopes(logits, labels, temperatures.detach()), temperatures.grad, rtol=1e-6)


def test_a_label_that_fits_cools_down_and_one_that_does_not_heats_up():
    heat = Heat(3, 2, DataParameters())
    heat.loss(step([[2.0, 0.0], [2.0, 0.0]], [0, 1], [0, 1]))
    fits, does_not, was_not_shown = heat.logs["samples"].tolist()
    assert fits < 0 < does_not
    assert was_not_shown == 0


def test_momentum_of_a_sample_that_is_not_shown_waits():
    heat = Heat(2, 2, DataParameters(samples=Temperatures(learning_rate=1.0), momentum=0.5))
    slope = 2 * np.exp(-2) / (1 + np.exp(-2)) / 128  # (2 - 2 softmax) / 128 at temperature 1
    shown, other = step([[2.0, 0.0]], [0], [0]), step([[2.0, 0.0]], [0], [1])
    heat.loss(shown)
    assert heat.logs["samples"][0].item() == pytest.approx(-slope)
    heat.loss(other)
    heat.loss(other)
    assert heat.momenta["samples"][0].item() == pytest.approx(slope)
    assert heat.logs["samples"][0].item() == pytest.approx(-slope)


def test_a_class_moves_once_a_step_by_the_sum_over_its_samples():
    heat = Heat(9, 2, DataParameters(samples=None, classes=Temperatures(learning_rate=1.0), momentum=0.5))
    slope = 2 * np.exp(-2) / (1 + np.exp(-2)) / 128
    heat.loss(step([[2.0, 0.0]] * 3, [0, 0, 0], [0, 1, 2]))
    assert heat.logs["classes"].tolist() == pytest.approx([-3 * slope, 0])


def test_temperatures_stay_within_their_bounds():
    heat = Heat(2, 2, DataParameters(samples=Temperatures(learning_rate=1e6)))
    heat.loss(step([[2.0, 0.0], [2.0, 0.0]], [0, 1], [0, 1]))
    assert heat.logs["samples"].exp().tolist() == pytest.approx([1 / 20, 20])


def test_joint_temperatures_are_sums():
    heat = Heat(2, 2, DataParameters(samples=Temperatures(0.5), classes=Temperatures(1.5)))
    loss = heat.loss(step([[2.0, 0.0]], [0], [0]))
    assert loss.item() == pytest.approx(np.log(1 + np.exp(-1)))  # logits 1 and 0


def test_temperatures_that_do_not_move_from_one_are_a_standard_training(blobs):
    x, labels, _ = blobs
    still = DataParameters(samples=Temperatures(start=1.0, learning_rate=0.0))
    standard, frozen = (recipes.fit((x, labels), recipe=recipe, budget=BUDGET) for recipe in ("standard", still))
    for ours, theirs in zip(frozen.network.parameters(), standard.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_mislabeled_samples_are_the_hottest(blobs):
    x, labels, true_labels = blobs
    fitted = recipes.fit((x, labels), recipe="data_parameters", budget=Budget(8, 32, learning_rate=0.05))
    num_mislabeled = int((labels != true_labels).sum())
    hottest = np.argsort(fitted.scores["data_parameters"])[:num_mislabeled]
    assert (labels != true_labels)[hottest].mean() > 0.8


@pytest.mark.parametrize("settings", [CLASSES, JOINT])
def test_the_authors_other_settings_train(blobs, settings):
    x, labels, _ = blobs
    fitted = recipes.fit((x, labels), recipe=settings, budget=BUDGET)
    assert ("data_parameters" in fitted.scores) == (settings is JOINT)
    assert all(np.isfinite(scores).all() for scores in fitted.scores.values())


def test_no_temperature_at_all_is_refused(blobs):
    x, labels, _ = blobs
    with pytest.raises(InputError, match="both samples and classes are None"):
        recipes.fit((x, labels), recipe=DataParameters(samples=None), budget=BUDGET)
