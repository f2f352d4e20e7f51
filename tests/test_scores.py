import numpy as np
import pytest
import torch

from undermargin import Tracker
from undermargin.tracking.scores import SCORES

RANKING = [name for name, score in SCORES.items() if score.is_directed]


@pytest.fixture(scope="module")
def blobs():
    """Three well separated blobs, one sample of each mislabeled, watched with every score while a net learns them."""
    rng = np.random.default_rng(0)
    true_labels = np.repeat([0, 1, 2], 40)
    x = rng.normal(size=(120, 2)) * 0.5 + np.array([[0, 4], [4, 0], [-4, -2]])[true_labels]
    mislabeled = [3, 50, 100]
    labels = true_labels.copy()
    labels[mislabeled] = (labels[mislabeled] + 1) % 3
    tracker = Tracker(120, list(SCORES), suggest=3)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
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
    # forgetting has ties: nobody may be below a mislabeled sample, some may be level with it
    assert scores[mislabeled].max() <= others.min()
    assert scores[mislabeled].mean() < others.mean()


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


def test_every_row_says_what_it_is_and_where_it_comes_from():
    for name, score in SCORES.items():
        assert score.description, name
        assert score.paper, name
        assert score.sign in (1, -1), name
