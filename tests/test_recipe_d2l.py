"""D2L: labels are mixed with predictions once the features' dimension rises."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors

from undermargin import noise, recipes
from undermargin.recipes import Budget
from undermargin.recipes.d2l import D2l, Interpolation, interpolated, local_dimensions, symmetric_loss, turning_point

BUDGET = Budget(epochs=6, batch_size=32, learning_rate=0.05)
NEVER = D2l(num_deviations=math.inf)
AT_ONCE = D2l(earliest=0.0, window=2, num_deviations=-1e9)  # anything is "clearly above"


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in three clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(240, n_features=4, centers=3, cluster_std=1.0, random_state=0)
    return x.astype(np.float32), noise.uniform(true_labels, 0.2, 3, seed=0), true_labels


def test_dimensions_are_those_of_a_plain_computation(rng):
    features = rng.normal(size=(50, 6))
    distances, _ = NearestNeighbors(n_neighbors=8).fit(features).kneighbors(features)
    nearest = distances[:, 1:]  # without the sample itself
    expected = [-7 / sum(math.log(distance / row[-1] + 1e-8) for distance in row) for row in nearest]
    np.testing.assert_allclose(local_dimensions(torch.from_numpy(features), 7), expected, rtol=1e-6)


def test_a_plane_in_ten_dimensions_has_about_two(rng):
    plane = rng.uniform(size=(1000, 2)) @ rng.normal(size=(2, 10))
    assert local_dimensions(torch.from_numpy(plane), 20).mean().item() == pytest.approx(2, abs=0.35)


def test_fewer_samples_than_neighbors_are_enough():
    assert local_dimensions(torch.randn(5, 3), 20).isfinite().all()


def test_the_turning_point_is_a_rise_of_two_deviations_and_not_before_its_time():
    falling, rising = [9.0, 7.0, 5.0, 4.0, 3.0, 2.0], [2.0, 6.0]
    assert turning_point([*falling, *rising], 0, 3, 2) == 7  # 6 against 3, 2, 2: mean 2.33, deviation 0.47
    assert turning_point([*falling, *rising], 5, 3, 2) is None
    assert turning_point(falling, 0, 3, 2) is None


def test_trust_falls_with_time_and_with_the_rise():
    interpolation = Interpolation(D2l(earliest=0.0, window=2), epochs=10)
    interpolation.load({"dimensions": torch.tensor([4.0, 2.0, 2.0, 8.0])})
    assert interpolation.turn == 3
    assert interpolation.trust == pytest.approx(math.exp(-(3 / 10) * 8 / 2))


def test_labels_and_predicted_classes_are_mixed():
    mixed = interpolated(torch.tensor([[1.0, 2.0, 0.0], [5.0, 2.0, 0.0]]), torch.tensor([0, 0]), 0.75)
    assert mixed.tolist() == [[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]]


def test_the_symmetric_loss_adds_the_cross_entropy_with_the_roles_changed():
    probabilities, is_label = np.array([0.7, 0.2, 0.1]), np.array([1, 1e-4, 1e-4])
    expected = 0.1 * -np.log(0.7) + 2 * -(probabilities * np.log(is_label)).sum()
    loss = symmetric_loss(torch.tensor(probabilities).log()[None], torch.tensor([0]), 0.1, 2)
    assert loss.item() == pytest.approx(expected)


def test_before_its_turning_point_it_is_a_standard_training(blobs):
    x, labels, _ = blobs
    standard, never = (recipes.fit((x, labels), recipe=recipe, budget=BUDGET) for recipe in ("standard", NEVER))
    for ours, theirs in zip(never.network.parameters(), standard.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert never.soft_labels is None
    assert "no turning point" in never.notes[0]


def test_after_its_turning_point_labels_are_soft(blobs):
    x, labels, true_labels = blobs
    fitted = recipes.fit((x, labels), recipe=AT_ONCE, budget=BUDGET, test=(x, true_labels))
    assert fitted.notes == ("the turning point was found before epoch 3 of 6",)
    np.testing.assert_allclose(fitted.soft_labels.sum(1), 1, rtol=1e-6)
    is_mixed = fitted.soft_labels[np.arange(240), labels] < 1
    assert np.mean(is_mixed == (labels != true_labels)) > 0.95
    assert fitted.test_error() < 0.05


def test_a_killed_training_ends_the_same(blobs, tmp_path):
    x, labels, _ = blobs
    whole = recipes.fit((x, labels), recipe=AT_ONCE, budget=BUDGET)

    def interrupt(stage, epoch, epochs):
        if epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recipes.fit((x, labels), recipe=AT_ONCE, budget=BUDGET, folder=tmp_path, on_epoch=interrupt)
    resumed = recipes.fit((x, labels), recipe=AT_ONCE, budget=BUDGET, folder=tmp_path)
    for ours, theirs in zip(resumed.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_samples_that_are_all_the_same_have_no_dimension_and_train_all_the_same():
    x, labels = np.ones((40, 4), np.float32), np.arange(40) % 2
    fitted = recipes.fit((x, labels), recipe="d2l", budget=BUDGET)
    assert np.isfinite(fitted.scores["d2l"]).all()
    assert fitted.soft_labels is None
