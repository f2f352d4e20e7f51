"""L_DMI: a loss that noise between classes moves by a constant alone."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from undermargin import noise, recipes
from undermargin.recipes import Budget
from undermargin.recipes.l_dmi import LDmi, determinant_loss
from undermargin.recipes.lesson import OnEpoch

BOTH = torch.tensor([0, 1])


def with_gradient(logits, labels):
    logits = logits.clone().requires_grad_()
    value, _ = determinant_loss(logits, labels, BOTH)
    value.backward()
    return value.item(), logits.grad


def test_the_loss_is_minus_the_log_determinant_of_labels_times_predictions():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    labels = np.array([0, 1, 1])
    expected = -np.log(abs(np.linalg.det(np.eye(2)[labels].T @ probabilities)) + 0.001)
    value, _ = determinant_loss(torch.tensor(probabilities).log(), torch.tensor(labels), BOTH, floor=0.001)
    assert value.item() - 2 * np.log(3) == pytest.approx(expected)  # 2 classes, a batch of 3


def test_noise_between_classes_moves_the_loss_by_a_constant_and_its_gradient_not_at_all():
    """Every sample four times: of class 0 one of four labels is flipped, of class 1 two."""
    labels = torch.tensor([0, 1, 1, 0, 1]).repeat_interleave(4)
    flipped = torch.where(labels == 0, torch.tensor([0, 0, 0, 1]).repeat(5), torch.tensor([0, 0, 1, 1]).repeat(5))
    determinant = 0.75 * 0.5 - 0.25 * 0.5
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(5, 2, dtype=torch.float64, generator=generator).repeat_interleave(4, 0)
        clean, gradient = with_gradient(logits, labels)
        noisy, noisy_gradient = with_gradient(logits, flipped)
        assert noisy - clean == pytest.approx(-np.log(determinant))
        # copies of a sample pull together: the same network results
        np.testing.assert_allclose(
            noisy_gradient.view(5, 4, 2).sum(1), gradient.view(5, 4, 2).sum(1), rtol=1e-8, atol=1e-12
        )


def test_a_hundred_classes_do_not_overflow():
    logits, labels = torch.eye(100) * 9, torch.arange(100)
    value, is_usable = determinant_loss(logits, labels, labels, floor=0.001)
    assert is_usable
    assert torch.isfinite(value)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (torch.randn(4, 2), torch.tensor([1, 1, 1, 1])),  # lacks a class
        (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])),  # says the same of everybody
        (torch.randn(1, 2), torch.tensor([0])),
    ],
)
def test_a_batch_without_a_determinant_teaches_nothing(logits, labels):
    logits.requires_grad_()
    value, is_usable = determinant_loss(logits, labels, BOTH, floor=0.001)
    value.backward()
    assert not is_usable
    assert value.item() == 0
    assert not logits.grad.any()


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in three clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(240, n_features=4, centers=3, cluster_std=1.0, random_state=0)
    return x.astype(np.float32), noise.uniform(true_labels, 0.2, 3, seed=0), true_labels


BUDGET = Budget(epochs=6, batch_size=32, learning_rate=0.05)


def test_the_second_stage_goes_on_from_the_first_and_scores_everybody(blobs):
    x, labels, true_labels = blobs
    fitted = recipes.fit((x, labels), recipe="l_dmi", budget=BUDGET, test=(x, true_labels))
    assert fitted.test_error() < 0.1
    assert np.isfinite(fitted.scores["l_dmi"]).all()
    assert np.isnan(fitted.scores["aum"]).sum() == 48  # held out
    assert fitted.notes == ()


def test_a_larger_learning_rate_moves_more(blobs):
    x, labels, _ = blobs
    still, moved = (
        recipes.fit((x, labels), recipe=LDmi(learning_rate=rate, held_out=0.0), budget=BUDGET) for rate in (0.0, 1e-3)
    )
    stay, move = (next(fitted.network.parameters()) for fitted in (still, moved))
    assert not torch.equal(stay, move)


def test_the_note_says_how_many_batches_lacked_a_class(blobs):
    x, labels, _ = blobs
    fitted = recipes.fit((x, labels), recipe="l_dmi", budget=Budget(1, 2, learning_rate=0.01))
    assert fitted.notes == ("96 of 96 batches lacked one of 3 classes and were not used; increase the batch size",)


def test_a_killed_training_ends_the_same(blobs, tmp_path):
    x, labels, _ = blobs
    whole = recipes.fit((x, labels), recipe="l_dmi", budget=BUDGET)

    def fit(on_epoch: OnEpoch):
        return recipes.fit((x, labels), recipe="l_dmi", budget=BUDGET, folder=tmp_path, on_epoch=on_epoch)

    for stage in ("cross_entropy", "determinant"):
        with pytest.raises(KeyboardInterrupt):
            fit(lambda at, epoch, epochs, stage=stage: interrupt() if (at, epoch) == (stage, 3) else None)
    resumed = fit(lambda stage, epoch, epochs: None)
    for ours, theirs in zip(resumed.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def interrupt():
    raise KeyboardInterrupt
