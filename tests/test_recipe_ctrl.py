import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from tests.blobs import make_blobs, small
from undermargin import recipes
from undermargin.recipes import Budget
from undermargin.recipes.ctrl import Clustering, Ctrl, cluster_ranks, prepared, separation, verdicts


@pytest.fixture
def blobs(rng):
    return make_blobs(rng, 0.2)


def curves(rng, num_epochs=8):
    """Two classes of ten; in each the last three are learned late, in the second class everything is harder."""
    labels = np.repeat([0, 1], 10)
    is_wrong = np.arange(20) % 10 >= 7
    level = np.where(is_wrong, 1.0, 0.1) + 2.0 * labels
    return level[:, None] * np.linspace(1, 0.5, num_epochs) + rng.normal(0, 0.01, (20, num_epochs)), labels, is_wrong


def test_losses_are_bounded_and_averaged_over_the_last_epochs():
    bound = 2 * np.log(3)  # about 2.2
    smooth = prepared(np.array([[6.0, 0, 0, 3, 1, 100]]), num_classes=3, smoothing=3)
    sums = [bound, bound, bound, bound, bound + 1, 2 * bound + 1]
    np.testing.assert_allclose(smooth, np.array([sums]) / 3)
    np.testing.assert_allclose(prepared(np.array([[1.0, 2.0]]), num_classes=20, smoothing=5), [[1.5, 1.5]])
    assert np.isfinite(prepared(np.array([[np.nan, np.inf]]), num_classes=3, smoothing=1)).all()


def test_clusters_are_made_within_a_class_and_ordered_from_the_largest_losses(rng):
    losses, labels, is_wrong = curves(rng)
    ranks = cluster_ranks(losses, labels, num_clusters=2, num_windows=4, seed=0)
    np.testing.assert_array_equal(ranks == 0, np.repeat(is_wrong[:, None], 4, axis=1))


def test_a_class_with_fewer_curves_than_clusters_is_clean():
    losses = np.zeros((4, 3))
    assert (cluster_ranks(losses, np.array([0, 0, 0, 1]), 2, 1, seed=0) == 2).all()


def test_a_split_is_judged_by_silhouette_accuracy_and_ratio(rng):
    losses, labels, is_wrong = curves(rng)
    is_learned = np.arange(20) != 0
    by_hand = (
        np.mean([silhouette_score(losses[labels == label], is_wrong[labels == label]) for label in (0, 1)])
        * np.mean([6 / 7, 1])
        * losses[is_wrong, -1].mean()
        / losses[~is_wrong, -1].mean()
    )
    assert separation(losses, labels, ~is_wrong, is_learned) == pytest.approx(by_hand)
    assert separation(losses, labels, np.ones(20, bool), is_learned) == -np.inf


def test_the_choice_finds_the_two_groups_without_knowing_them(rng):
    losses, labels, is_wrong = curves(rng)
    chosen = Ctrl().choose(losses, labels, ~is_wrong, seed=0)
    found = verdicts(losses, labels, chosen, seed=0)
    np.testing.assert_array_equal(found.is_flagged, is_wrong)
    assert chosen.num_noisy < chosen.num_clusters


def test_a_sample_is_kept_if_enough_windows_take_it_for_clean(rng):
    """One sample looks wrong in the first half of training alone."""
    losses = np.full((10, 4), 0.1) + rng.normal(0, 0.001, (10, 4))
    losses[9] += 3
    losses[8, :2] += 3
    labels = np.zeros(10, int)
    strict, mild = (verdicts(losses, labels, Clustering(2, 1, 2, votes), seed=0) for votes in (2, 1))
    assert strict.flagged.tolist() == [9, 8]
    assert mild.flagged.tolist() == [9]


def test_the_wrong_labels_are_removed_and_the_network_is_trained_again(blobs):
    x, labels, true = blobs
    fitted = recipes.fit((x, labels), recipe="ctrl", model=small, budget=Budget(6, 32, learning_rate=0.05))
    assert (fitted.verdicts.is_flagged == (labels != true)).mean() > 0.9
    np.testing.assert_array_equal(np.isnan(fitted.scores["aum"]), fitted.verdicts.is_flagged)
    assert "num_clusters" in fitted.notes[0]


def test_a_killed_training_keeps_its_curves(blobs, tmp_path):
    x, labels, _ = blobs
    budget = Budget(4, 32, learning_rate=0.05)

    def kill(stage, epoch, epochs):
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recipes.fit((x, labels), recipe="ctrl", model=small, budget=budget, folder=tmp_path, on_epoch=kill)
    resumed = recipes.fit((x, labels), recipe="ctrl", model=small, budget=budget, folder=tmp_path)
    whole = recipes.fit((x, labels), recipe="ctrl", model=small, budget=budget)
    np.testing.assert_array_equal(resumed.scores["ctrl"], whole.scores["ctrl"])
