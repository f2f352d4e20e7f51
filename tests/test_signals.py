import numpy as np
import pytest
import torch

from tests import reference
from undermargin.tracking.signals import SIGNALS, WITH_ENTROPY, WITH_SOFTMAX, Batch


def signal(name, logits, labels):
    return SIGNALS[name](Batch(logits, labels).statistics(WITH_ENTROPY))


def one(name, logits, label):
    return signal(name, torch.tensor([logits]), torch.tensor([[label]]))[0].tolist()


def test_the_margin_is_the_assigned_logit_minus_the_largest_other():
    assert one("margin", [1.0, 5.0, 3.0], 1) == [2.0]
    assert one("margin", [1.0, 5.0, 3.0], 0) == [-4.0]


def test_two_equal_logits_have_margin_zero_and_do_not_count_as_correct():
    assert one("margin", [2.0, 2.0], 0) == [0.0]
    assert one("correct", [2.0, 2.0], 0) == [0.0]


def test_hand_worked_probabilities():
    # softmax of log(1), log(1), log(2) is 1/4, 1/4, 1/2
    logits = np.log([1.0, 1.0, 2.0]).tolist()
    assert one("confidence", logits, 2) == pytest.approx([0.5])
    assert one("loss", logits, 2) == pytest.approx([np.log(2)])
    assert one("probability_margin", logits, 0) == pytest.approx([-0.25])
    assert one("el2n", logits, 2) == pytest.approx([np.sqrt(0.25 + 2 / 16)])
    batch = Batch(torch.tensor([logits]), torch.tensor([[1]]))
    probabilities = batch.other_probabilities(batch.statistics(WITH_SOFTMAX))
    assert probabilities[0].tolist() == pytest.approx([0.25, 0, 0.5])


@pytest.mark.parametrize("number", [WITH_SOFTMAX, WITH_ENTROPY])
def test_a_softmax_in_place_changes_neither_the_given_logits_nor_what_is_read_later(number):
    logits = torch.tensor([[1.0, 5.0, 3.0]])
    batch = Batch(logits, torch.tensor([[1]]))
    batch.statistics(number)
    assert logits.tolist() == [[1.0, 5.0, 3.0]]
    assert batch.others.tolist() == [[1.0, -np.inf, 3.0]]


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_equals_a_loop_over_single_samples(name):
    logits, labels = torch.randn(20, 7) * 5, torch.randint(0, 7, (20, 1))
    expected = [reference.signals(row.tolist(), int(label))[name] for row, label in zip(logits, labels, strict=True)]
    assert signal(name, logits, labels)[:, 0].tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_is_finite_for_enormous_logits(name):
    values = signal(name, torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]]), torch.tensor([[0], [0]]))
    assert values.isfinite().all()
    assert values.shape == (2, 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_worked_on_in_single_precision(dtype):
    logits = torch.tensor([[8.0, 3.0]], dtype=dtype)
    margin = signal("margin", logits, torch.tensor([[0]]))
    assert margin.dtype == torch.float32
    assert margin.item() == 5.0


@pytest.mark.parametrize("ahead", [1.0, 5.0, 10.0, 15.0, -5.0, -40.0])
def test_losses_keep_their_digits_near_zero_and_far_from_it(ahead):
    wanted = reference.signals([ahead, 0.0, 0.0], 0)
    assert one("loss", [ahead, 0.0, 0.0], 0) == pytest.approx([wanted["loss"]], rel=1e-6)
    assert one("el2n", [ahead, 0.0, 0.0], 0) == pytest.approx([wanted["el2n"]], rel=1e-6)


def test_statistics_are_the_same_however_many_are_asked_for():
    logits, labels = torch.randn(20, 7) * 5, torch.randint(0, 7, (20, 1))
    few, more, all_four = (Batch(logits, labels).statistics(number).parts for number in (1, WITH_SOFTMAX, WITH_ENTROPY))
    for ours, theirs in [*zip(few, more, strict=False), *zip(more, all_four, strict=False)]:
        assert torch.equal(ours, theirs)


def test_a_masked_class_of_minus_infinity_changes_nothing_else():
    assert one("signed_entropy", [0.0, -torch.inf, 0.0], 0) == pytest.approx([-np.log(1.5)])
    assert one("margin", [1.0, -torch.inf, 0.0], 0) == [1.0]
    assert one("el2n", [0.0, -torch.inf, 0.0], 0) == pytest.approx([np.sqrt(0.5)])


@pytest.mark.parametrize("name", SIGNALS)
def test_a_shift_of_all_logits_changes_nothing(name):
    logits, labels = torch.randint(-40, 40, (20, 7)) / 8, torch.randint(0, 7, (20, 1))  # exact, shifted or not
    torch.testing.assert_close(signal(name, logits + 10_000, labels), signal(name, logits, labels), rtol=0, atol=0)
