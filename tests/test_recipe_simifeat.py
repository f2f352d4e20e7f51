import numpy as np
import pytest
import torch

from undermargin import recipes
from undermargin.recipes import simifeat
from undermargin.recipes.simifeat import (
    SimiFeat,
    against_rival,
    disagreement,
    label_votes,
    nearest,
    transition,
    wrong_shares,
)

T = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]], dtype=torch.float64)
SHARES = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)


@pytest.mark.parametrize("compared_together", [1, 500, 2**24])
def test_neighbours_are_those_of_the_whole_matrix_however_few_are_compared_together(
    compared_together, monkeypatch, rng
):
    monkeypatch.setattr(simifeat, "COMPARED_TOGETHER", compared_together)
    x = rng.normal(size=(70, 4)).astype(np.float32)
    similarities, positions = nearest(torch.from_numpy(x), 5)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = unit @ unit.T
    order = np.argsort(-cosines, axis=1)[:, :5]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_allclose(similarities, np.take_along_axis(cosines, order, 1), rtol=1e-5)


def test_a_sample_is_its_own_first_neighbour_even_among_copies():
    _, positions = nearest(torch.ones(6, 2), 3)
    assert positions[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert all(len(set(row)) == 3 for row in positions.tolist())


def test_votes_worked_out_by_hand():
    # itself counts 2 x .9 - .8 = 1.0; label 0 gets 1.0 + .3, label 1 gets .9 + .8; length sqrt(1.3^2 + 1.7^2)
    votes = label_votes(torch.tensor([[1.0, 0.9, 0.8, 0.3]]), torch.tensor([[0, 1, 1, 0]]), 3)
    length = (1.3**2 + 1.7**2) ** 0.5
    np.testing.assert_allclose(votes[0], [1.3 / length, 1.7 / length, 0], rtol=1e-6)
    own, rival = against_rival(votes, torch.tensor([0]))
    np.testing.assert_allclose([own.item(), rival.item()], [1.3 / length, 1.7 / length], rtol=1e-6)


def test_disagreement_counts_all_groups_also_those_that_were_never_seen():
    seen = {(0, 0, 1): 0.25, (2, 1, 2): 0.75}
    square = 0.0
    for group in np.ndindex(3, 3, 3):
        expected = sum(SHARES[true] * np.prod([T[true, label] for label in group]) for true in range(3))
        square += float(expected - seen.get(group, 0)) ** 2
    found = disagreement(T, SHARES, torch.tensor(list(seen)), torch.tensor(list(seen.values()), dtype=torch.float64))
    assert found.item() == pytest.approx(square**0.5)


def drawn(rng, num_samples):
    """Labels of samples and two neighbours that share their true class."""
    true = rng.choice(3, num_samples, p=SHARES.numpy())
    edges = T.numpy().cumsum(1)[true]
    return torch.from_numpy((rng.random((num_samples, 3))[:, :, None] > edges[:, None]).sum(2))


def test_the_transition_matrix_is_recovered_from_neighbours_alone(rng):
    matrix, shares = transition(drawn(rng, 30_000), 3, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(matrix, T, atol=0.04)
    np.testing.assert_allclose(shares, SHARES, atol=0.03)


def test_wrong_shares_are_bayes_rule(rng):
    # of label 1, .2 x .9 are right and .5 x .2 + .3 x .3 wrong; of label 0, .5 x .8 right and .2 x .1 wrong
    rates = wrong_shares(drawn(rng, 30_000), 4, seed=0)
    np.testing.assert_allclose(rates[:3], [0.02 / 0.42, 0.19 / 0.37, 0], atol=0.05)
    assert np.isfinite(rates[3])  # a class that nobody has


@pytest.mark.parametrize("name", ["simifeat", "simifeat_vote"])
def test_it_finds_the_flipped_labels_of_blobs_in_one_training(name, noisy_blobs):
    x, y, is_mislabeled = noisy_blobs
    stages = []
    fitted = recipes.fit(
        (x, y),
        recipe=name,
        budget=recipes.Budget(epochs=2, batch_size=32, learning_rate=0.02),
        on_epoch=lambda stage, epoch, epochs: stages.append(stage),
    )
    assert set(stages) == {"retraining"}
    assert fitted.verdicts.is_flagged[is_mislabeled].mean() > 0.8
    assert fitted.verdicts.is_flagged[~is_mislabeled].mean() < 0.1
    assert fitted.scores[name].shape == (len(y),)


def test_images_are_compared_by_features_of_a_short_training(rng):
    labels = np.arange(60) % 2
    images = (rng.integers(0, 60, (60, 8, 8, 1)) + 150 * labels[:, None, None, None]).astype(np.uint8)
    stages = []
    recipes.fit(
        (images, labels),
        recipe=SimiFeat(variant="vote", warm_up=0.5),
        budget=recipes.Budget(epochs=2, batch_size=16),
        on_epoch=lambda stage, epoch, epochs: stages.append((stage, epochs)),
    )
    assert list(dict.fromkeys(stages)) == [("warm_up", 1), ("retraining", 2)]
