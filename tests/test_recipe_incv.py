import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.blobs import make_blobs, small
from undermargin import noise, recipes
from undermargin.errors import InputError
from undermargin.recipes import Budget, Known
from undermargin.recipes.incv import (
    Incv,
    SelectedFirst,
    discarded,
    estimated_noise,
    noise_among_selected,
    num_rounds_of_best,
)
from undermargin.training.objective import Step


@pytest.fixture
def blobs(rng):
    return make_blobs(rng, 0.3)


def fit(x, labels, method, pattern="uniform", **options):
    budget = Budget(8, 32, learning_rate=0.05)
    return recipes.fit((x, labels), recipe=method, model=small, budget=budget, known=Known(pattern=pattern), **options)


@pytest.mark.parametrize("rate", [0.001, 0.2, 0.45, 0.8])
def test_the_noise_rate_is_recovered_from_how_often_two_noisy_labels_agree(rate):
    assert estimated_noise((1 - rate) ** 2 + rate**2 / 9, 10) == pytest.approx(rate, abs=0.001)


def test_the_noise_rate_is_recovered_in_a_simulation(rng):
    true = rng.integers(0, 5, 200_000)
    first, second = (noise.uniform(true, 0.3, 5, seed=seed) for seed in (1, 2))
    assert estimated_noise((first == second).mean(), 5) == pytest.approx(0.3, abs=0.01)
    agreed = first == second
    assert noise_among_selected(0.3, 5) == pytest.approx((first != true)[agreed].mean(), abs=0.005)


def test_less_agreement_than_any_noise_gives_is_taken_for_the_most_noise():
    assert estimated_noise(0.0, 10) == pytest.approx(0.9)
    assert estimated_noise(0.0, 2) == pytest.approx(0.5)
    assert estimated_noise(1.0, 10) == 0.001


def test_the_largest_losses_are_given_up_but_nobody_who_was_selected():
    rows, losses = np.array([10, 11, 12, 13]), np.array([0.1, 5.0, 3.0, 4.0])
    is_agreed = np.array([True, False, False, True])
    np.testing.assert_array_equal(discarded(rows, losses, is_agreed, ratio=1.0), [11])  # 13 is second, but agreed
    np.testing.assert_array_equal(discarded(rows, losses, is_agreed, ratio=1.5), [11, 12])
    assert len(discarded(rows, losses, is_agreed, ratio=0.4)) == 0  # not everybody, as a slice from -0 would take


def test_the_best_epoch_is_asked_longer_the_less_noise_there_is():
    assert [num_rounds_of_best(rate, is_uniform=True) for rate in (0.2, 0.4, 0.7)] == [4, 2, 1]
    assert num_rounds_of_best(0.2, is_uniform=False) == 1


def teaching(num_candidates=6):
    is_selected = torch.arange(20) < 10
    return SelectedFirst(
        is_selected, torch.arange(10, 10 + num_candidates), noise_rate=0.5, gradual_epochs=10, candidates_after=0.5
    )


def test_candidates_are_appended_to_the_batches_in_proportion_and_at_most_half_a_batch():
    objective = teaching()
    objective.drawn = objective.candidates
    batches = objective.batches(torch.arange(10), 4, epoch=0)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3, 10, 11], [4, 5, 6, 7, 12, 13], [8, 9, 14, 15]]
    objective.drawn = objective.candidates[:0]
    assert [len(batch) for batch in objective.batches(torch.arange(10), 4, epoch=0)] == [4, 4, 2]
    few = teaching(num_candidates=1)
    few.drawn = few.candidates
    assert sum(len(batch) for batch in few.batches(torch.arange(10), 4, epoch=0)) == 10


def test_each_network_learns_from_what_the_other_finds_easy_as_many_as_selected_ones_should_be_right():
    """Four selected and two candidates, half of the selected wrong: two are kept, by the other network's losses."""
    outputs = torch.zeros(6, 2, 2)
    outputs[:, 0, 0] = torch.tensor([6.0, 5, 4, 3, 2, 1])  # the first finds the first ones easy
    outputs[:, 1, 0] = torch.tensor([1.0, 2, 3, 4, 5, 6])
    labels, indices = torch.zeros(6, dtype=torch.long), torch.tensor([0, 1, 2, 3, 10, 11])
    step = Step(outputs, labels, indices, epoch=10, share=0.9, generator=torch.Generator(), evaluated=lambda: outputs)
    first = F.cross_entropy(outputs[[4, 5], 0], labels[:2])
    second = F.cross_entropy(outputs[[0, 1], 1], labels[:2])
    assert teaching().loss(step).item() == pytest.approx((first + second).item(), rel=1e-6)


@pytest.mark.parametrize("pattern", ["uniform", "asymmetric"])
def test_the_wrong_labels_are_not_selected(blobs, pattern):
    x, labels, true = blobs
    fitted = fit(x, labels, Incv(num_rounds=2, selection_share=0.75), pattern)
    np.testing.assert_array_equal(fitted.verdicts.is_flagged, fitted.weights == 0)
    assert (fitted.verdicts.is_flagged == (labels != true)).mean() > 0.85
    assert (fitted.predict(np.arange(180)).argmax(1) == true).mean() > 0.9


def test_a_killed_training_ends_as_if_it_had_not_been(blobs, tmp_path):
    x, labels, _ = blobs
    short = Incv(num_rounds=1)

    def kill(stage, epoch, epochs):
        if (stage, epoch) in (("round0-1", 1), ("teaching", 6)):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fit(x, labels, short, folder=tmp_path, on_epoch=kill)
    resumed, whole = fit(x, labels, short, folder=tmp_path), fit(x, labels, short)
    np.testing.assert_array_equal(resumed.scores["incv"], whole.scores["incv"])
    np.testing.assert_array_equal(resumed.predict(np.arange(180)), whole.predict(np.arange(180)))


def test_without_the_pattern_it_says_what_is_missing(blobs):
    with pytest.raises(InputError, match="whether the noise is uniform or asymmetric"):
        recipes.fit(blobs[:2], recipe="incv", budget=Budget(2, 32))
