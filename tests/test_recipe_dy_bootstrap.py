import numpy as np
import pytest
import torch
from scipy import stats

from tests.blobs import make_blobs, small
from undermargin import recipes
from undermargin.cutoffs.mixtures import beta_posterior
from undermargin.recipes import Budget
from undermargin.recipes.dy_bootstrap import DyBootstrap, DynamicLabels, dynamic_loss, unevenness

LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]])
LABELS = torch.tensor([1, 1])


@pytest.fixture
def blobs(rng):
    return make_blobs(rng, 0.3)


def fit(x, labels, method, epochs=8, **options):
    return recipes.fit(
        (x, labels), recipe=method, model=small, budget=Budget(epochs, 32, learning_rate=0.05), **options
    )


def test_a_sample_nobody_doubts_costs_its_cross_entropy_and_a_doubted_one_what_the_network_says():
    log = np.log(np.exp(LOGITS.numpy()) / np.exp(LOGITS.numpy()).sum(1, keepdims=True))
    believed = dynamic_loss(LOGITS, LABELS, torch.zeros(2))
    np.testing.assert_allclose(believed, -log[[0, 1], [1, 1]], rtol=1e-5)
    hard = dynamic_loss(LOGITS, LABELS, torch.ones(2))
    np.testing.assert_allclose(hard, -log[[0, 1], [0, 1]], rtol=1e-5)
    soft = dynamic_loss(LOGITS, LABELS, torch.ones(2), is_soft=True)
    np.testing.assert_allclose(soft, stats.entropy(np.exp(log), axis=1), rtol=1e-5)
    mixed = dynamic_loss(LOGITS, LABELS, torch.tensor([0.25, 0.5]))
    expected = torch.stack([0.75 * believed[0] + 0.25 * hard[0], 0.5 * (believed[1] + hard[1])])
    np.testing.assert_allclose(mixed, expected, rtol=1e-5)


def test_the_networks_word_is_taken_as_it_is():
    """The gradient of the soft target's cross-entropy is prediction minus target, which here are the same."""
    logits = LOGITS.clone().requires_grad_()
    dynamic_loss(logits, LABELS, torch.ones(2), is_soft=True).sum().backward()
    np.testing.assert_allclose(logits.grad, np.zeros((2, 3)), atol=1e-6)


def test_predicting_every_class_equally_often_costs_nothing_and_one_alone_much():
    confident = 50 * torch.eye(3)
    assert unevenness(confident).item() == pytest.approx(0, abs=1e-5)
    mean = torch.tensor([0.7, 0.2, 0.1])
    by_hand = sum((1 / 3) * np.log((1 / 3) / share) for share in (0.7, 0.2, 0.1))
    assert unevenness(mean.log()[None]).item() == pytest.approx(by_hand, rel=1e-5)
    assert torch.isfinite(unevenness(torch.tensor([[1000.0, 0.0, 0.0]])))


def test_the_lookup_during_training_is_the_mixtures_posterior(rng):
    losses = np.concatenate([rng.exponential(0.2, 600), rng.normal(3, 0.7, 400).clip(0)])
    objective = DynamicLabels(DyBootstrap(), np.arange(3))
    posterior = beta_posterior(losses)
    objective.shares = torch.from_numpy(posterior.shares).float()
    asked = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 50.0])
    found = objective._suspicion(posterior, torch.tensor(asked, dtype=torch.float32))
    np.testing.assert_allclose(found, posterior.of(asked), atol=5e-3)
    assert objective._suspicion(posterior, torch.tensor([np.inf, np.nan])).isfinite().all()


@pytest.mark.parametrize("settings", [{}, {"is_soft": True}, {"mixture": "gaussian"}])
def test_the_wrong_labels_are_found_and_doubted(blobs, settings):
    x, labels, true = blobs
    fitted = fit(x, labels, DyBootstrap(start=0.35, **settings))
    assert (fitted.verdicts.is_flagged == (labels != true)).mean() > 0.9
    assert (fitted.soft_labels.argmax(1) == true).mean() > 0.9
    np.testing.assert_allclose(fitted.soft_labels.sum(1), 1, rtol=1e-6)
    assert (fitted.predict(np.arange(180)).argmax(1) == true).mean() > 0.9


def test_before_its_start_it_is_standard_training(blobs):
    x, labels, _ = blobs
    late = fit(x, labels, DyBootstrap(start=1.0), epochs=3)
    standard = fit(x, labels, "standard", epochs=3)
    np.testing.assert_array_equal(late.predict(np.arange(180)), standard.predict(np.arange(180)))


def test_labels_are_doubted_after_the_first_drop_of_the_learning_rate_or_early_where_there_is_none():
    assert DyBootstrap().first_epoch(Budget(300, 256, drops=(0.5, 0.75))) == 156
    assert DyBootstrap().first_epoch(Budget(3, 256)) == 1
    assert DyBootstrap(start=0).first_epoch(Budget(300, 256)) == 0


def test_a_killed_training_ends_as_if_it_had_not_been(blobs, tmp_path):
    x, labels, _ = blobs

    def kill(stage, epoch, epochs):
        if epoch == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(x, labels, "dy_bootstrap", folder=tmp_path, on_epoch=kill)
    resumed, whole = fit(x, labels, "dy_bootstrap", folder=tmp_path), fit(x, labels, "dy_bootstrap")
    np.testing.assert_array_equal(resumed.weights, whole.weights)


def test_a_batch_of_one_and_equal_losses_are_survived():
    x = np.zeros((9, 4), np.float32)
    fitted = recipes.fit(
        (x, np.arange(9) % 3), recipe=DyBootstrap(start=0), model=small, budget=Budget(2, 1, learning_rate=0.01)
    )
    assert np.isfinite(fitted.weights).all()
