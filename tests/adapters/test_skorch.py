import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier
from skorch.dataset import ValidSplit
from torch import nn
from torch.utils.data import TensorDataset

from tests.adapters.plain import NUM_FLIPPED, flipped_digits, margin, mean_margins
from undermargin import Tracker, folds, identify
from undermargin.adapters.skorch import INDEXED, IndexedView, TrackerCallback
from undermargin.errors import InputError

BATCH, EPOCHS = 13, 3  # 300 samples: the last batch has one


@pytest.fixture(scope="module")
def digits():
    return flipped_digits()


class Module(nn.Module):
    def __init__(self, num_outputs=11, is_logits=True):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, num_outputs))
        self.is_logits = is_logits

    def forward(self, X):
        outputs = self.layers(X)
        return outputs if self.is_logits else outputs.softmax(1)


def make(callback=None, *, is_logits=True, **settings):
    settings = {"train_split": None, "max_epochs": EPOCHS, "batch_size": BATCH, "lr": 0.1, "verbose": 0} | settings
    criterion = nn.CrossEntropyLoss if is_logits else nn.NLLLoss
    if callback is not None:
        settings |= {"callbacks": [callback], **INDEXED}
    return NeuralNetClassifier(Module, module__is_logits=is_logits, criterion=criterion, **settings)


@pytest.mark.parametrize("is_logits", [True, False], ids=["logits", "probabilities"])
def test_scores_equal_a_plain_loop_over_the_same_batches(is_logits, digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    make(TrackerCallback(tracker), is_logits=is_logits, iterator_train__shuffle=False).fit(x, labels)
    module, margins = Module(), np.zeros((EPOCHS, 300))
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for epoch in range(EPOCHS):
        for start in range(0, 300, BATCH):
            batch = slice(start, min(start + BATCH, 300))
            logits = module(torch.from_numpy(x[batch]))
            pairs = zip(logits.detach().numpy(), labels[batch], strict=True)
            margins[epoch, batch] = [margin(*pair) for pair in pairs]
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits, torch.from_numpy(labels[batch])).backward()
            optimizer.step()
    np.testing.assert_allclose(tracker.scores(), margins.mean(0), rtol=1e-3, atol=1e-4)
    assert tracker.epoch == EPOCHS


@pytest.mark.parametrize("batch_size", [1, 7, 300])
def test_ids_are_right_when_the_loader_shuffles(batch_size, digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    net = make(TrackerCallback(tracker), lr=0.0, iterator_train__shuffle=True, batch_size=batch_size, max_epochs=2)
    net.fit(x, labels)  # nothing is learned: margins depend on the sample alone
    expected = mean_margins([Module()(torch.from_numpy(x)).detach().numpy()], labels)
    np.testing.assert_allclose(tracker.scores(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("train_split", [None, ValidSplit(5, stratified=True)], ids=["all", "split"])
def test_losses_and_weights_are_bit_equal_with_and_without_the_callback(train_split, digits):
    x, labels, _ = digits
    tracker, nets = Tracker(300), []
    for callback in (None, TrackerCallback(tracker)):
        torch.manual_seed(5)
        nets.append(make(callback, train_split=train_split, iterator_train__shuffle=True).fit(x, labels))
    plain, watched = nets
    columns = "train_loss" if train_split is None else ("train_loss", "valid_loss", "valid_acc")
    assert watched.history[:, columns] == plain.history[:, columns]
    for one, other in zip(watched.module_.parameters(), plain.module_.parameters(), strict=True):
        assert torch.equal(one, other)
    assert np.array_equal(watched.predict(x), plain.predict(x))


def test_samples_that_skorch_splits_off_for_validation_are_not_observed(digits):
    x, labels, _ = digits
    tracker, split = Tracker(300), ValidSplit(5, stratified=True)
    net = make(TrackerCallback(tracker), train_split=split, lr=0.0).fit(x, labels)
    train, _ = split(net.get_dataset(x, labels), labels)
    is_trained_on = np.isin(np.arange(300), train.indices)
    expected = mean_margins([Module()(torch.from_numpy(x)).detach().numpy()], labels)
    np.testing.assert_allclose(tracker.scores()[is_trained_on], expected[is_trained_on], rtol=1e-4, atol=1e-5)
    assert np.isnan(tracker.scores()[~is_trained_on]).all()


def test_every_fit_starts_the_tracker_again_and_partial_fit_goes_on(digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    net = make(TrackerCallback(tracker))
    first = net.fit(x, labels) and tracker.scores()
    net.fit(x, labels)
    assert tracker.epoch == EPOCHS
    assert np.array_equal(tracker.scores(), first)
    net.partial_fit(x, labels)
    assert tracker.epoch == 2 * EPOCHS


def test_a_clone_of_a_fitted_net_has_a_tracker_of_its_own_that_saw_nothing(digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    net = make(TrackerCallback(tracker)).fit(x, labels)
    before = tracker.scores()
    other = clone(net).fit(x, labels)
    copied = dict(other.callbacks_)["TrackerCallback"].tracker
    assert copied is not tracker
    assert copied.epoch == EPOCHS
    assert np.array_equal(tracker.scores(), before)
    assert np.array_equal(copied.scores(), before)


def test_a_tracker_of_another_size_is_refused_before_training(digits):
    x, labels, _ = digits
    net = make(TrackerCallback(Tracker(300)), max_epochs=1)
    with pytest.raises(InputError, match="the tracker is for 300 samples, but the net is fitted on 150"):
        GridSearchCV(net, {"lr": [0.1]}, cv=2, error_score="raise").fit(x, labels)


def test_a_data_set_of_the_users_own_is_wrapped_by_ours(digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(labels))
    net = make(TrackerCallback(tracker), lr=0.0, iterator_train__shuffle=True)
    net.fit(IndexedView(dataset), None)
    expected = mean_margins([Module()(torch.from_numpy(x)).detach().numpy()], labels)
    np.testing.assert_allclose(tracker.scores(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, lambda x: {"X": x}], ids=["sparse", "mapping"])
def test_inputs_may_have_any_form_that_skorch_takes(kind, digits):
    x, labels, _ = digits
    trackers = Tracker(300), Tracker(300)
    for tracker, inputs in zip(trackers, (x, kind(x)), strict=True):
        make(TrackerCallback(tracker)).fit(inputs, labels)
    np.testing.assert_allclose(trackers[0].scores(), trackers[1].scores(), rtol=1e-5)


def test_workers_of_the_loader_send_the_indices_along(digits):
    x, labels, _ = digits
    tracker = Tracker(300)
    net = make(
        TrackerCallback(tracker), lr=0.0, max_epochs=1, iterator_train__num_workers=1, iterator_train__shuffle=True
    )
    net.fit(x, labels)
    expected = mean_margins([Module()(torch.from_numpy(x)).detach().numpy()], labels)
    np.testing.assert_allclose(tracker.scores(), expected, rtol=1e-4, atol=1e-5)


def test_the_one_logit_of_a_binary_net_becomes_two(digits):
    x, labels, _ = digits
    x, labels = 20 * x - 5, (labels % 2).astype(np.float32)  # large enough not to be taken for probabilities
    tracker = Tracker(300)
    settings = {"max_epochs": 1, "lr": 0.0, "verbose": 0, "train_split": None} | INDEXED
    net = NeuralNetBinaryClassifier(Module, module__num_outputs=1, callbacks=[TrackerCallback(tracker)], **settings)
    net.fit(x, labels)
    logits = Module(1)(torch.from_numpy(x)).detach().numpy()[:, 0]
    np.testing.assert_allclose(tracker.scores(), np.where(labels == 1, logits, -logits), rtol=1e-4, atol=1e-5)


def test_batches_without_indices_are_an_error(digits):
    x, labels, _ = digits
    net = make(callbacks=[TrackerCallback(Tracker(300))])
    with pytest.raises(InputError, match=r"Make the net with \*\*undermargin.adapters.skorch.INDEXED"):
        net.fit(x, labels)


def test_two_folds_find_the_flipped_labels(digits):
    x, labels, is_flipped = digits
    runs = []
    for fold in folds(labels, 10):
        tracker = Tracker(300)
        net = make(TrackerCallback(tracker), lr=0.5, max_epochs=15, batch_size=32, module__num_outputs=fold.num_outputs)
        net.fit(x, fold.labels)
        runs.append(tracker.run(fold))
    assert is_flipped[identify(runs).order[:NUM_FLIPPED]].mean() > 0.7
