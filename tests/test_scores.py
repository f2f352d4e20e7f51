import numpy as np
import pytest
import torch
from scipy import stats

from undermargin import Tracker
from undermargin.tracking.scores import SCORES

# a trend shows only while the network learns, and these blobs are learned in the first epoch of twenty
RANKING = [name for name, score in SCORES.items() if score.is_directed and name != "confidence_trend"]


@pytest.fixture(scope="module")
def blobs():
    """Three well separated blobs, one sample of each mislabeled, tracked with every score while a net learns them."""
    return learned_blobs(lr=0.1)


def learned_blobs(lr):
    rng = np.random.default_rng(0)
    true_labels = np.repeat([0, 1, 2], 40)
    x = rng.normal(size=(120, 2)) * 0.5 + np.array([[0, 4], [4, 0], [-4, -2]])[true_labels]
    mislabeled = [3, 50, 100]
    labels = true_labels.copy()
    labels[mislabeled] = (labels[mislabeled] + 1) % 3
    tracker = Tracker(120, list(SCORES), suggest=3)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    inputs, targets = torch.tensor(x, dtype=torch.float32), torch.tensor(labels)
    for _ in range(20):
        for indices in torch.randperm(120).split(16):
            logits = model(inputs[indices])
            tracker.update(logits, targets[indices], indices)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, targets[indices]).backward()
            optimizer.step()
        tracker.end_epoch()
    return tracker, mislabeled, true_labels


@pytest.mark.parametrize("name", RANKING)
def test_every_score_ranks_the_mislabeled_blobs_last(name, blobs):
    tracker, mislabeled, _ = blobs
    scores = tracker.scores(name)
    others = np.delete(scores, mislabeled)
    # forgetting has ties: no sample may score lower than a mislabeled one, some may score the same
    assert scores[mislabeled].max() <= others.min()
    assert scores[mislabeled].mean() < others.mean()


def test_the_trend_ranks_the_mislabeled_blobs_last_while_the_network_learns():
    tracker, mislabeled, _ = learned_blobs(lr=0.002)
    scores = tracker.scores("confidence_trend")
    assert scores[mislabeled].max() < np.delete(scores, mislabeled).min()


def test_the_suggestion_for_a_mislabeled_blob_is_its_true_class(blobs):
    tracker, mislabeled, true_labels = blobs
    classes, confidence = tracker.suggestions()
    np.testing.assert_array_equal(classes[mislabeled], true_labels[mislabeled])
    assert (confidence[mislabeled] > 0.9).all()


@pytest.mark.parametrize("name", SCORES)
def test_the_order_of_batches_within_an_epoch_does_not_matter(name):
    logits, labels = torch.randn(3, 6, 4), torch.randint(0, 4, (6,))
    forward, backward = Tracker(6, [name]), Tracker(6, [name])
    for epoch in logits:
        for index in range(6):
            forward.update(epoch[[index]], labels[[index]], [index])
            backward.update(epoch[[5 - index]], labels[[5 - index]], [5 - index])
        forward.end_epoch()
        backward.end_epoch()
    np.testing.assert_array_equal(forward.scores(name), backward.scores(name))


@pytest.mark.parametrize("name", SCORES)
def test_an_unobserved_sample_is_nan_and_an_observed_one_is_not(name):
    tracker = Tracker(2, [name])
    tracker.update([[1.0, 0.5]], [0], [0])
    tracker.end_epoch()
    assert np.isnan(tracker.scores(name)).tolist() == [False, True]


def test_forgetting_counts_what_was_unlearned_and_ranks_the_never_learned_lowest():
    tracker = Tracker(3, ["forgetting", "wrong_events"])
    history = [[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 1]]  # correct or not, for each epoch and sample
    for correct in history:
        tracker.update([[2.0 * c - 1, 0.0] for c in correct], [0, 0, 0], [0, 1, 2])
        tracker.end_epoch()
    assert tracker.scores("forgetting").tolist() == [-2, -4, 0]
    assert tracker.scores("wrong_events").tolist() == [-2, -4, 0]


def trends(confidences):
    """The scores of samples with these confidences, (epochs, samples)."""
    num_samples = confidences.shape[1]
    tracker = Tracker(num_samples, ["confidence_trend"])
    for epoch in confidences:
        logits = np.stack((np.log(epoch), np.log1p(-epoch)), 1).astype(np.float32)
        tracker.update(logits, [0] * num_samples, np.arange(num_samples))
        tracker.end_epoch()
    return tracker.scores("confidence_trend")


def test_the_trend_is_the_t_statistic_of_a_regression_where_residuals_are_large(rng):
    confidences = rng.uniform(0.05, 0.95, (40, 6)) ** np.linspace(3, 0.5, 40)[:, None]
    lines = [stats.linregress(np.arange(40), column) for column in confidences.T]
    # the deviation is that of the residuals and .01 together: here they are about 25 times larger
    np.testing.assert_allclose(trends(confidences), [line.slope / line.stderr for line in lines], rtol=2e-3)


def test_a_confidence_that_falls_scores_below_one_that_stays_below_one_that_rises():
    line = np.linspace(0.2, 0.8, 9)
    falls, stays, rises = trends(np.stack((line[::-1], np.full(9, 0.6), line), 1))
    assert falls == pytest.approx(-rises, rel=1e-4)
    assert abs(stays) < 1e-4
    assert np.isfinite(rises)  # a straight line has no residuals
    assert rises > 10


def test_two_epochs_have_no_trend():
    assert trends(np.array([[0.2, 0.9], [0.8, 0.1]])).tolist() == [0, 0]


def test_the_entropy_is_signed_by_whether_the_label_wins():
    tracker = Tracker(4, ["signed_entropy"])
    sure = [50.0, 0.0, 0.0]
    tracker.update([sure, sure, [1.0, 1.0, 1.0], np.log([1, 1, 2]).tolist()], [0, 1, 2, 2], [0, 1, 2, 3])
    expected = [np.log(3), -np.log(3), 0, np.log(3) - 1.5 * np.log(2)]  # of 1/4, 1/4, 1/2 the entropy is 1.5 bits
    np.testing.assert_allclose(tracker.scores("signed_entropy"), expected, atol=1e-6)


def test_every_row_says_what_it_is_and_where_it_comes_from():
    for name, score in SCORES.items():
        assert score.description, name
        assert score.paper, name
        assert score.sign in (1, -1), name
