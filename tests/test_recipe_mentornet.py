"""MentorNet: a mentor that learns a curriculum, and a training that listens to it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from torch import nn

from undermargin import noise, recipes
from undermargin.errors import InputError
from undermargin.recipes import Budget, Known
from undermargin.recipes.mentor import Mentor, curriculum, predefined, teach
from undermargin.recipes.mentornet import DATA_DRIVEN, Mentored, MentorNet, dropout_rates
from undermargin.training.objective import Step

BUDGET = Budget(epochs=6, batch_size=32, learning_rate=0.05)
QUICK = MentorNet(num_points=10_000, num_steps=400)
KNOWN = Known(noise_rate=0.2)


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in three clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(240, n_features=4, centers=3, cluster_std=1.0, random_state=0)
    return x.astype(np.float32), noise.uniform(true_labels, 0.2, 3, seed=0), true_labels


class ByRule(nn.Module):
    """A mentor that was born with its curriculum."""

    def weigh(self, losses, average, percent):
        self.asked = losses - average, percent
        return curriculum(losses - average, torch.tensor(percent))


def step(outputs, labels, share, seed=0):
    outputs, labels = torch.tensor(outputs), torch.tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    return Step(outputs, labels, torch.arange(len(labels)), 0, share, generator, lambda: outputs)


def test_the_mentors_weights_are_those_of_a_computation_by_hand():
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    mentor = Mentor()
    w = {name: value.numpy() for name, value in mentor.state_dict().items()}
    for loss, average, percent in [(0.5, 0.2, 0), (2.0, 3.0, 50), (0.0, 0.0, 99)]:
        shown = np.array([loss, loss - average])
        gate = sigmoid(w["gates.weight"] @ shown + w["gates.bias"])
        cells = gate * np.tanh(w["candidates.weight"] @ shown + w["candidates.bias"])
        features = np.concatenate([w["labels.weight"][0], w["percents.weight"][percent], cells])
        hidden = np.tanh(w["hidden.weight"] @ features + w["hidden.bias"])
        expected = sigmoid(w["output.weight"] @ hidden + w["output.bias"])
        weights = mentor.weigh(torch.tensor([loss]), torch.tensor(average), percent)
        np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)


def test_the_mentors_cells_are_those_of_a_bidirectional_lstm():
    mentor, lstm = Mentor(), nn.LSTM(2, 1, bidirectional=True)
    with torch.no_grad():
        for direction, suffix in enumerate(("", "_reverse")):  # torch's order: input, forget, candidate, output
            for number, layer in ((0, mentor.gates), (2, mentor.candidates)):
                getattr(lstm, f"weight_ih_l0{suffix}")[number] = layer.weight[direction]
                getattr(lstm, f"bias_ih_l0{suffix}")[number] = layer.bias[direction]
                getattr(lstm, f"bias_hh_l0{suffix}")[number] = 0
        shown = torch.randn(7, 2)
        _, (_, cells) = lstm(shown[None])
        seen = []
        mentor.hidden.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        mentor(shown[:, 0], shown[:, 1], torch.zeros(7, dtype=torch.long))
    np.testing.assert_allclose(seen[0][:, 7:], cells[:, :, 0].T, rtol=1e-5)


def test_the_curriculum_takes_everybody_then_the_easy_then_the_hard_a_little():
    differences = torch.tensor([-1.0, 0.0, 0.3, 2.0])
    taught = [curriculum(differences, torch.tensor(percent)).tolist() for percent in (18, 19, 89, 90)]
    assert taught[0] == [1, 1, 1, 1]
    assert taught[1] == taught[2] == [1, 1, 0, 0]
    assert taught[3] == pytest.approx([1, 1, 0.7, 0])


def test_points_are_drawn_from_the_whole_grid_without_repetition():
    points = predefined(20_000, seed=0)
    distinct = {*zip(points.losses.tolist(), points.differences.tolist(), points.percents.tolist(), strict=True)}
    assert len(distinct) == 20_000
    assert (points.losses.min(), points.losses.max()) == (0, 29)
    assert (points.differences.min(), points.differences.max()) == (-5, pytest.approx(4.9))
    assert (points.percents.min(), points.percents.max()) == (0, 99)


def test_the_mentor_learns_its_curriculum():
    points = predefined(12_000, seed=0)
    mentor = teach(points.at(torch.arange(10_000)), num_steps=1000, seed=0)
    held_out = points.at(torch.arange(10_000, 12_000))
    learned = mentor(held_out.losses, held_out.differences, held_out.percents).sigmoid()
    assert (learned - held_out.weights).abs().mean() < 0.05
    always_the_mean = (held_out.weights.mean() - held_out.weights).abs().mean()
    assert always_the_mean > 0.3


def test_losses_are_compared_with_a_moving_percentile():
    mentored = Mentored(ByRule(), 0.5, 3, MentorNet(dropout=((0.0, 100),)))
    right, unsure, wrong = np.log1p(np.exp(-2)), np.log(2), np.log1p(np.exp(2))
    shown = step([[2.0, 0.0], [0.0, 0.0], [0.0, 2.0]], [0, 0, 0], share=0.5)
    loss = mentored.loss(shown)
    np.testing.assert_allclose(mentored.mentor.asked[0], np.array([right, unsure, wrong]) - unsure / 2, rtol=1e-5)
    assert loss.item() == pytest.approx(right / 3)  # only this one is below the average
    mentored.loss(shown)
    assert mentored.average.item() == pytest.approx(unsure * 0.75)


def test_everybody_weighs_the_same_until_the_burn_in_ends_and_then_time_stands_still():
    mentored = Mentored(ByRule(), 0.5, 3, MentorNet(burn_in=30, is_time_frozen=True, dropout=((0.0, 100),)))
    outputs, labels = [[2.0, 0.0], [0.0, 0.0], [0.0, 2.0]], [0, 0, 0]
    plain = nn.functional.cross_entropy(torch.tensor(outputs), torch.tensor(labels))
    assert mentored.loss(step(outputs, labels, share=0.299)).item() == pytest.approx(plain.item())
    assert mentored.loss(step(outputs, labels, share=0.95)).item() < plain.item()
    assert mentored.mentor.asked[1] == 30


def test_a_share_of_the_batch_is_left_out_at_random():
    mentored = Mentored(ByRule(), 0.5, 10, MentorNet(dropout=((0.7, 50), (0.0, 50))))
    outputs, labels = [[0.0, 0.0]] * 10, [0] * 10
    assert mentored.loss(step(outputs, labels, share=0.0)).item() == pytest.approx(np.log(2) * 3 / 10)
    assert mentored.loss(step(outputs[:1], labels[:1], share=0.0)).item() == pytest.approx(np.log(2))
    with pytest.raises(InputError, match="sum to 60 percent, expected 100"):
        dropout_rates(((0.5, 60),))


def test_mislabeled_samples_weigh_less(blobs):
    x, labels, true_labels = blobs
    fitted = recipes.fit((x, labels), recipe=QUICK, budget=BUDGET, known=KNOWN, test=(x, true_labels))
    is_wrong = labels != true_labels
    assert fitted.weights[is_wrong].mean() < 0.5 < fitted.weights[~is_wrong].mean()
    np.testing.assert_array_equal(fitted.scores["mentornet"], fitted.weights)
    assert fitted.test_error() < 0.05


def test_a_mentor_taught_on_trusted_samples_knows_the_mislabeled_ones_too(blobs):
    x, labels, true_labels = blobs
    known = Known(trusted=np.arange(0, 240, 4), true_labels=true_labels)
    recipe = replace(DATA_DRIVEN, num_steps=400)
    fitted = recipes.fit((x, labels), recipe=recipe, budget=replace(BUDGET, epochs=20), known=known)
    is_wrong = labels != true_labels
    assert fitted.weights[is_wrong].mean() < 0.4 < 0.6 < fitted.weights[~is_wrong].mean()


def test_what_must_be_known_is_asked_for(blobs):
    x, labels, true_labels = blobs
    with pytest.raises(InputError, match="share of wrong labels"):
        recipes.fit((x, labels), recipe="mentornet", budget=BUDGET)
    known = Known(trusted=np.zeros(0, np.int64), true_labels=true_labels)
    with pytest.raises(InputError, match="none of the 240 samples is in Known.trusted"):
        recipes.fit((x, labels), recipe="mentornet_dd", budget=BUDGET, known=known)


def test_a_killed_training_ends_the_same_with_the_same_mentor(blobs, tmp_path, monkeypatch):
    x, labels, _ = blobs
    whole = recipes.fit((x, labels), recipe=QUICK, budget=BUDGET, known=KNOWN)

    def interrupt(stage, epoch, epochs):
        if epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recipes.fit((x, labels), recipe=QUICK, budget=BUDGET, known=KNOWN, folder=tmp_path, on_epoch=interrupt)
    monkeypatch.delattr("undermargin.recipes.mentornet.teach")  # it is not taught again
    resumed = recipes.fit((x, labels), recipe=QUICK, budget=BUDGET, known=KNOWN, folder=tmp_path)
    for ours, theirs in zip(resumed.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
