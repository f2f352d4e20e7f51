import warnings

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests import reference
from undermargin import Tracker, Trajectories, folds
from undermargin.errors import InputError, ObservationError, UndermarginWarning
from undermargin.storage.tensors import save_tensors
from undermargin.tracking.memory import Memory
from undermargin.tracking.observations import as_labels
from undermargin.tracking.scores import SCORES
from undermargin.tracking.settings import Settings

LOGITS = torch.tensor([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
LABELS = torch.tensor([0, 2])
INDICES = torch.tensor([4, 1])


def test_the_score_of_a_sample_is_its_mean_margin_and_nan_without_one():
    tracker = Tracker(5)
    tracker.update(LOGITS, LABELS, INDICES)
    tracker.update(LOGITS * 2, LABELS, INDICES)
    np.testing.assert_array_equal(tracker.scores(), [np.nan, -1.5, np.nan, np.nan, 3.0])


def test_an_epochs_mean_counts_once_however_often_a_sample_was_shown_in_it():
    tracker = Tracker(1)
    for margins in ([10.0], [0.0, 2.0, 4.0]):  # epoch means 10 and 2
        for margin in margins:
            tracker.update([[margin, 0.0]], [0], [0])
        tracker.end_epoch()
    assert tracker.scores().tolist() == [6.0]


def test_without_end_epoch_every_observation_counts_once():
    tracker = Tracker(1)
    for margin in (10.0, 0.0, 2.0):
        tracker.update([[margin, 0.0]], [0], [0])
    assert tracker.scores().tolist() == [4.0]


def test_an_open_epoch_does_not_count_beside_ended_ones():
    tracker = Tracker(1)
    tracker.update([[1.0, 0.0]], [0], [0])
    tracker.end_epoch()
    tracker.update([[9.0, 0.0]], [0], [0])
    with pytest.warns(UndermarginWarning, match=r"1 observations since the last end_epoch\(\) do not count"):
        assert tracker.scores().tolist() == [1.0]


@pytest.mark.parametrize(
    "indices",
    [[4, 1], (4, 1), np.array([4, 1]), np.array([4, 1], dtype=np.uint8), torch.tensor([4, 1]).int()],
)
def test_indices_may_be_lists_arrays_or_tensors(indices):
    tracker = Tracker(5)
    tracker.update(LOGITS, LABELS.numpy(), indices)
    assert tracker.scores()[[4, 1]].tolist() == [2.0, -1.0]


@pytest.mark.parametrize(
    "ids", [["a", "b", "c", "d", "e"], [50, 11, 7, 3, 40], np.array([50, 11, 7, 3, 40]), list(np.arange(5) + 7)]
)
def test_names_and_numbers_can_stand_for_positions(ids):
    tracker = Tracker(5, ids=ids)
    tracker.update(LOGITS, LABELS, [ids[4], ids[1]])
    assert tracker.scores()[[4, 1]].tolist() == [2.0, -1.0]
    assert tracker.run().ids == [str(one) for one in ids]


def test_an_unknown_name_is_an_error_that_names_it():
    tracker = Tracker(2, ids=["a", "b"])
    with pytest.raises(ObservationError, match="'z' is not among the 2 ids"):
        tracker.update(LOGITS, LABELS, ["a", "z"])


def test_an_unknown_number_is_lost_and_reported():
    tracker = Tracker(2, ids=[10, 20])
    tracker.update(LOGITS, LABELS, [10, 30])
    with pytest.warns(UndermarginWarning, match="index out of range: 1 observation"):
        assert tracker.scores().tolist()[0] == 2.0


def test_numbers_too_large_for_a_tensor_are_names():
    tracker = Tracker(2, ids=[2**63 + 5, 1])
    tracker.update(LOGITS, LABELS, [1, 2**63 + 5])
    assert tracker.scores().tolist() == [-1.0, 2.0]


def test_ids_must_be_unique_and_as_many_as_the_samples():
    with pytest.raises(InputError, match="1 ids occur more than once"):
        Tracker(2, ids=["a", "a"])
    with pytest.raises(InputError, match="3 ids for 2 samples"):
        Tracker(2, ids=["a", "b", "c"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_logits_of_any_float_type_accumulate_in_single_precision_or_better(dtype):
    tracker = Tracker(1)
    for _ in range(3000):  # in half precision the sum would stand still at 2048
        tracker.update(torch.tensor([[1.0, 0.0]], dtype=dtype), [0], [0])
    assert tracker.scores().tolist() == [1.0]


def test_double_precision_margins_keep_their_digits():
    tracker = Tracker(1)
    tracker.update(torch.tensor([[1e6 + 1e-3, 1e6]], dtype=torch.float64), [0], [0])
    assert tracker.scores()[0] == pytest.approx(1e-3, rel=1e-5)


def test_a_batch_of_one_and_an_empty_batch():
    tracker = Tracker(2)
    tracker.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long), [])
    tracker.update(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]), torch.tensor([1]))
    np.testing.assert_array_equal(tracker.scores(), [np.nan, 1.0])


def test_labels_of_a_batch_of_one_may_have_lost_their_axis():
    labels = folds([0, 1, 2, 0, 1, 2, 0, 1], num_classes=3)[0].assigned_labels
    index = torch.tensor([5])
    tracker = Tracker(8)
    tracker.update(torch.tensor([[1.0, 0.0, 4.0, 0.0]]), labels[index], index)  # NumPy takes it for a plain number
    assert tracker.scores()[5] == 3.0


def test_an_empty_batch_may_come_as_lists():
    tracker = Tracker(5)
    tracker.update(torch.empty(0, 3), [], [])
    assert np.isnan(tracker.scores()).all()


def test_reversed_and_read_only_arrays_are_taken():
    logits, labels = LOGITS.numpy()[::-1], LABELS.numpy()[::-1]
    indices = np.array([1, 4])
    for values in (logits, labels, indices):
        values.setflags(write=False)
    tracker = Tracker(5)
    tracker.update(logits, labels, indices)
    assert tracker.scores()[[1, 4]].tolist() == [-1.0, 2.0]


def test_sizes_may_be_numpys_numbers(tmp_path):
    labels = np.arange(8) % 3
    fold = folds(labels, labels.max() + 1)[0]
    tracker = Tracker(np.int64(8), suggest=fold.num_classes, skip_epochs=np.int64(0), until_epoch=np.int64(2))
    tracker.update(torch.randn(2, 4), [0, 1], [0, 1])
    tracker.save(tmp_path / "tracker.safetensors")
    assert Tracker.load(tmp_path / "tracker.safetensors").suggest == 3


def test_a_sample_twice_in_one_batch_is_averaged():
    tracker = Tracker(1)
    tracker.update([[4.0, 0.0], [0.0, 2.0]], [0, 0], [0, 0])
    assert tracker.scores().tolist() == [1.0]


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_logit_of_a_binary_model_is_the_margin_of_class_one(shape):
    tracker = Tracker(3)
    tracker.update(torch.tensor([2.0, 2.0, -1.0]).reshape(shape), [1, 0, 1], [0, 1, 2])
    assert tracker.scores().tolist() == [2.0, -2.0, -1.0]


def test_a_forward_pass_that_runs_twice_changes_nothing():
    once, twice = Tracker(5), Tracker(5)
    for _ in range(3):
        once.update(LOGITS, LABELS, INDICES)
        for _ in range(2):
            twice.update(LOGITS, LABELS, INDICES)
        once.end_epoch()
        twice.end_epoch()
    np.testing.assert_array_equal(once.scores(), twice.scores())


def test_buffers_that_the_caller_overwrites_are_not_looked_at_later():
    tracker = Tracker(5)
    logits, labels, indices = LOGITS.clone(), LABELS.clone(), INDICES.clone()
    tracker.update(logits, labels, indices)
    logits.zero_()
    labels.zero_()
    indices.zero_()
    assert tracker.scores()[[4, 1]].tolist() == [2.0, -1.0]


def test_large_and_small_batches_mix():
    tracker = Tracker(70_000)
    tracker.update([[1.0, 0.0]], [0], [5])
    tracker.update(torch.tensor([[3.0, 0.0]]).expand(70_000, 2), torch.zeros(70_000).long(), torch.arange(70_000))
    assert tracker.scores()[[0, 5]].tolist() == [3.0, 2.0]


def test_skipped_epochs_and_those_after_the_end_are_not_averaged():
    tracker = Tracker(1, skip_epochs=1, until_epoch=3)
    for margin in (100.0, 1.0, 3.0, 100.0):
        tracker.update([[margin, 0.0]], [0], [0])
        tracker.end_epoch()
    assert tracker.scores().tolist() == [2.0]


def test_skip_epochs_without_epochs_is_an_error():
    tracker = Tracker(1, skip_epochs=1)
    tracker.update([[1.0, 0.0]], [0], [0])
    with pytest.raises(ObservationError, match="end_epoch"):
        tracker.scores()


@pytest.mark.parametrize("name", [name for name, score in SCORES.items() if score.needs_epochs])
def test_scores_that_compare_epochs_say_that_they_need_them(name):
    tracker = Tracker(1, scores=[name])
    tracker.update([[1.0, 0.0]], [0], [0])
    with pytest.raises(ObservationError, match=f"{name} compares epochs"):
        tracker.scores(name)


def test_a_score_that_was_not_tracked_or_does_not_exist_is_an_error():
    with pytest.raises(InputError, match="request it with"):
        Tracker(1).scores("el2n")
    with pytest.raises(InputError, match="no score 'aumm'; choose from aum"):
        Tracker(1, scores=["aumm"])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_one_overflow_does_not_poison_a_sample(name, bad):
    clean, hurt = Tracker(2, [name, "aum"]), Tracker(2, [name, "aum"])
    for epoch in range(3):
        logits = torch.tensor([[1.0 - epoch, 0.0], [1.0, 0.0]])
        clean.update(logits, [0, 0], [0, 1])
        hurt.update(logits, [0, 0], [0, 1])
        hurt.update([[bad, 0.0], [0.0, bad]], [0, 0], [0, 1])
        clean.end_epoch()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndermarginWarning)
            hurt.end_epoch()
    np.testing.assert_array_equal(hurt.scores(name), clean.scores(name))
    np.testing.assert_array_equal(hurt.scores("aum"), clean.scores("aum"))
    assert hurt.lost == {"non-finite logits": 6}


def test_what_is_lost_is_reported():
    tracker = Tracker(1)
    tracker.update([[torch.nan, 0.0]], [0], [0])
    with pytest.warns(UndermarginWarning, match="non-finite logits: 1 observations"):
        tracker.scores()


def test_negative_labels_are_ignored_silently_as_losses_do():
    tracker = Tracker(2)
    tracker.update([[1.0, 0.0], [1.0, 0.0]], [0, -100], [0, 1])
    np.testing.assert_array_equal(tracker.scores(), [1.0, np.nan])
    assert tracker.lost == {"negative label": 1}


def test_a_label_beyond_the_outputs_and_an_index_beyond_the_samples_are_lost_and_reported():
    tracker = Tracker(2)
    tracker.update([[1.0, 0.0]] * 4, [0, 2, 0, 0], [0, 1, 2, -1])
    with pytest.warns(UndermarginWarning) as warned:
        np.testing.assert_array_equal(tracker.scores(), [1.0, np.nan])
    messages = " ".join(str(one.message) for one in warned)
    assert "label too large: 1 observations" in messages
    assert "index out of range: 2 observations" in messages
    assert "one more" in messages  # what to do about it


def test_losses_are_counted_over_epochs():
    tracker = Tracker(1)
    with pytest.warns(UndermarginWarning, match="out of range"):
        for _ in range(3):
            tracker.update([[1.0, 0.0]] * 2, [0, 0], [0, 7])
            tracker.end_epoch()
    assert tracker.lost == {"index out of range": 3}


def test_a_validation_loop_warns_once():
    tracker = Tracker(5)
    with torch.no_grad(), pytest.warns(UndermarginWarning, match="validation loop") as warned:
        tracker.update(LOGITS, LABELS, INDICES)
        tracker.update(LOGITS, LABELS, INDICES)
    assert len(warned) == 1


def test_logits_of_a_training_step_observed_under_no_grad_do_not_warn():
    logits = LOGITS.clone().requires_grad_()
    with torch.no_grad():
        Tracker(5).update(logits, LABELS, INDICES)


def test_probabilities_instead_of_logits_are_noticed():
    tracker = Tracker(16)
    tracker.update(torch.randn(16, 3).softmax(1), torch.zeros(16).long(), torch.arange(16))
    with pytest.warns(UndermarginWarning, match="are probabilities"):
        tracker.scores()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_probabilities_are_noticed_in_half_precision_too(dtype):
    tracker = Tracker(64)
    tracker.update(torch.randn(64, 10).softmax(1).to(dtype), torch.zeros(64, dtype=torch.long), torch.arange(64))
    with pytest.warns(UndermarginWarning, match="are probabilities") as warned:
        tracker.scores()
    assert warned[0].filename == __file__  # it names the caller's line


def test_what_single_precision_cannot_hold_is_not_finite():
    tracker = Tracker(2)
    tracker.update(torch.tensor([[1e39, 0.0], [3.0, 1.0]], dtype=torch.float64), [0, 0], [0, 1])
    with pytest.warns(UndermarginWarning, match="non-finite logits: 1 observations"):
        assert tracker.scores().tolist()[1] == 2.0
    assert tracker.lost == {"non-finite logits": 1}


def test_a_sigmoid_instead_of_one_logit_is_noticed():
    tracker = Tracker(16)
    tracker.update(torch.rand(16) * 0.9 + 0.05, torch.zeros(16).long(), torch.arange(16))
    with pytest.warns(UndermarginWarning, match="are probabilities"):
        tracker.scores()


def test_a_first_batch_in_inference_mode_does_not_break_the_training_after_it():
    tracker = Tracker(5)
    with torch.inference_mode(), pytest.warns(UndermarginWarning, match="validation loop"):
        tracker.update(LOGITS, LABELS, INDICES)
    tracker.update(LOGITS, LABELS, INDICES)
    tracker.end_epoch()
    assert tracker.scores()[4] == 2.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_another_default_type_does_not_matter(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        tracker = Tracker(5, list(SCORES), suggest=3)
        tracker.update(LOGITS, LABELS, INDICES)
        tracker.end_epoch()
        assert tracker.scores()[4] == 2.0
    finally:
        torch.set_default_dtype(before)


def test_the_state_follows_the_batches_to_another_device():
    memory = Memory(Settings(5, ("aum",), suggest=3), None, None)
    memory.state_for(LOGITS).update(LOGITS, LABELS, INDICES)
    memory.state_for(LOGITS.to("meta"))  # a second device that every machine has
    assert {value.device.type for value in memory.as_dict().values() if torch.is_tensor(value)} == {"meta"}


def test_tensors_without_values_are_refused_and_the_state_stays():
    tracker = Tracker(5)
    tracker.update(LOGITS, LABELS, INDICES)
    for given in (
        (LOGITS.to("meta"), LABELS, INDICES),
        (LOGITS, LABELS.to("meta"), INDICES),
        (LOGITS, LABELS, INDICES.to("meta")),
    ):
        with pytest.raises(InputError, match="on the meta device, where tensors have no values"):
            tracker.update(*given)
    assert tracker.scores()[[4, 1]].tolist() == [2.0, -1.0]


def test_a_state_taken_earlier_does_not_change_when_training_goes_on():
    tracker = Tracker(1)
    tracker.update([[1.0, 0.0]], [0], [0])
    tracker.end_epoch()
    state = tracker.state_dict()
    tracker.update([[9.0, 0.0]], [0], [0])
    tracker.end_epoch()
    tracker.load_state_dict(state)
    assert (tracker.epoch, tracker.scores().tolist()) == (1, [1.0])


@pytest.mark.parametrize("bounds", [{"skip_epochs": -1}, {"skip_epochs": 2, "until_epoch": 2}])
def test_bounds_that_leave_no_epoch_are_refused(bounds):
    with pytest.raises(InputError, match="leave no epoch to average"):
        Tracker(1, **bounds)


@pytest.mark.parametrize(
    ("logits", "labels", "indices", "message"),
    [
        (LOGITS, ["cat", "dog"], INDICES, "labels are not numbers"),
        (LOGITS, LABELS, torch.tensor([True, False]), "expected integers"),
        (LOGITS, torch.rand(2, 3), INDICES, "Soft labels"),
        (LOGITS, torch.rand(2), INDICES, "Soft labels"),
        (LOGITS, LABELS[:1], INDICES, "1 labels for 2 rows"),
        (LOGITS, LABELS, INDICES[:1], "1 indices for 2 rows"),
        (LOGITS.long(), LABELS, INDICES, "expected floating point"),
        (torch.rand(2, 3, 4, 4), LABELS, INDICES, r"shape \(2, 3, 4, 4\), expected \(batch, classes\)"),
        (LOGITS, LABELS, ["a", "b"], "ids=names"),
        (LOGITS, LABELS, torch.rand(2), "expected integers"),
        (LOGITS, 0, INDICES, r"labels have shape \(\)"),
    ],
)
def test_wrong_shapes_and_types_are_errors_that_say_what_to_do(logits, labels, indices, message):
    with pytest.raises(InputError, match=message):
        Tracker(5).update(logits, labels, indices)


def test_another_number_of_classes_is_an_error():
    tracker = Tracker(5)
    tracker.update(LOGITS, LABELS, INDICES)
    with pytest.raises(InputError, match="2 classes, expected 3 as before"):
        tracker.update(LOGITS[:, :2], [0, 0], INDICES)


def test_the_graph_of_the_training_step_is_left_alone():
    weights = torch.randn(4, 3, requires_grad=True)
    logits = torch.randn(2, 4) @ weights
    Tracker(5).update(logits, LABELS, INDICES)
    logits.sum().backward()
    assert weights.grad is not None


def test_aum_alone_takes_at_most_sixteen_bytes_a_sample():
    tracker = Tracker(10_000)
    tracker.update(LOGITS, LABELS, INDICES)
    tracker.end_epoch()
    tensors = [value for value in tracker.state_dict().values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.nbytes for tensor in tensors) <= 16 * 10_000 + 200


def test_the_suggestion_is_the_class_that_most_often_beat_the_label():
    tracker = Tracker(2, suggest=4)
    for winner in (1, 2, 2, 0):  # of sample 0, labeled 0; sample 1 is always right
        logits = torch.zeros(2, 4)
        logits[0, winner] = 1.0
        logits[1, 3] = 1.0
        tracker.update(logits, [0, 3], [0, 1])
        tracker.end_epoch()
    classes, confidence = tracker.suggestions()
    assert classes.tolist() == [2, -1]
    assert confidence.tolist() == [0.5, 0.0]


def test_the_extra_label_is_never_suggested_nor_does_it_hide_a_class_that_beats_the_label_too():
    tracker = Tracker(2, suggest=3)
    for _ in range(2):
        tracker.update([[0.0, 4.0, 0.0, 5.0], [4.0, 0.0, 0.0, 5.0]], [0, 0], [0, 1])
        tracker.end_epoch()
    assert tracker.suggestions()[0].tolist() == [1, -1]


def test_an_epoch_that_is_not_averaged_suggests_nothing(tmp_path):
    tracker = Tracker(2, skip_epochs=1, suggest=3, trajectories=Trajectories(tmp_path))
    tracker.update([[0.0, 4.0, 1.0]], [0], [0])  # class 1 beats the label, but only here
    tracker.end_epoch()
    tracker.update([[0.0, 4.0, 1.0]], [0], [1])
    tracker.end_epoch()
    assert tracker.suggestions()[0].tolist() == [-1, 1]


def test_of_two_trackers_that_share_an_epoch_the_later_one_knows_the_last_rival():
    first, second = Tracker(1, suggest=2), Tracker(1, suggest=2)
    first.update([[0.0, 4.0]], [0], [0])
    second.update([[4.0, 0.0]], [0], [0])
    first.merge(second)
    first.end_epoch()
    assert first.suggestions()[0].tolist() == [-1]


def test_suggestions_need_epochs_and_a_number_of_classes():
    tracker = Tracker(1, suggest=2)
    tracker.update([[0.0, 1.0]], [0], [0])
    with pytest.raises(ObservationError, match="counted over epochs"):
        tracker.suggestions()
    with pytest.raises(InputError, match="such as fold.num_classes"):
        Tracker(1, suggest=True)
    with pytest.raises(InputError, match="were not tracked"):
        Tracker(1).suggestions()


def test_a_class_with_more_than_a_fifth_of_a_thousand_classes_votes_is_always_remembered(rng):
    tracker = Tracker(1, suggest=1000)
    winners = [777] * 30 + rng.integers(1, 1000, 70).tolist()
    for winner in rng.permutation(winners):
        tracker.update(torch.nn.functional.one_hot(torch.tensor([winner]), 1000).float(), [0], [0])
        tracker.end_epoch()
    classes, confidence = tracker.suggestions()
    assert classes.tolist() == [777]
    assert 0.1 <= confidence[0] <= 0.3


def test_suggestions_at_a_thousand_classes_take_bounded_memory():
    tracker = Tracker(1000, suggest=1000)
    tracker.update(torch.randn(64, 1000), torch.zeros(64).long(), torch.arange(64))
    tracker.end_epoch()
    tensors = [value for value in tracker.state_dict().values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.nbytes for tensor in tensors) < 64 * 1000


def test_a_run_carries_the_folds_labels_and_threshold_samples():
    first, _ = folds([0, 1, 2] * 4, 3)
    tracker = Tracker(12, suggest=3)
    tracker.update(torch.randn(12, 4), first.labels, np.arange(12))
    tracker.end_epoch()
    run = tracker.run(first, ids=[f"{i}.png" for i in range(12)], class_names=["a", "b", "c"])
    assert run.labels.tolist() == [0, 1, 2] * 4
    assert run.is_threshold.sum() == 3
    assert run.suggested_labels.max() < 3
    np.testing.assert_array_equal(run.scores, tracker.scores())


def test_a_score_without_a_suspicious_direction_cannot_be_judged():
    tracker = Tracker(1, scores=["variability"])
    tracker.update([[1.0, 0.0]], [0], [0])
    tracker.end_epoch()
    with pytest.raises(InputError, match="variability has no suspicious direction"):
        tracker.run(score="variability")


def feed(tracker, stream):
    for epoch in stream:
        for index, label, logits in epoch:
            tracker.update(torch.tensor([logits]), [label], [index])
        tracker.end_epoch()


@pytest.fixture(scope="module")
def stream():
    generator = torch.Generator().manual_seed(1)
    return [[(index, index % 3, torch.randn(3, generator=generator).tolist()) for index in range(6)] for _ in range(5)]


def test_a_later_trackers_epochs_follow(stream):
    names = list(SCORES)
    first, second = Tracker(6, names), Tracker(6, names)
    feed(first, stream[:2])
    feed(second, stream[2:])
    first.merge(second)
    assert first.epoch == 5
    for name in names:
        np.testing.assert_allclose(first.scores(name), reference.scores(name, stream, 6), rtol=1e-5, atol=1e-6)


def test_trackers_that_watched_something_else_do_not_merge():
    with pytest.raises(InputError, match="differ in their settings"):
        Tracker(3).merge(Tracker(4))
    with pytest.raises(InputError, match="differ in their ids"):
        Tracker(2, ids=["a", "b"]).merge(Tracker(2, ids=["b", "a"]))
    three, two = Tracker(5), Tracker(5)
    three.update(LOGITS, LABELS, INDICES)
    two.update(LOGITS[:, :2], [0, 0], INDICES)
    with pytest.raises(InputError, match="3 and 2 outputs"):
        three.merge(two)


@pytest.mark.parametrize("how", ["state_dict", "file"])
def test_resuming_in_mid_epoch_equals_the_uninterrupted_run(stream, how, tmp_path):
    names = list(SCORES)
    whole = Tracker(6, names, suggest=3)
    feed(whole, stream)
    part = Tracker(6, names, suggest=3)
    feed(part, stream[:2])
    for index, label, logits in stream[2][:3]:
        part.update(torch.tensor([logits]), [label], [index])
    if how == "file":
        part.save(tmp_path / "tracker.safetensors")
        resumed = Tracker.load(tmp_path / "tracker.safetensors")
    else:
        resumed = Tracker(6, names, suggest=3)
        resumed.load_state_dict(part.state_dict())
    feed(resumed, [stream[2][3:], *stream[3:]])
    for name in names:
        np.testing.assert_array_equal(resumed.scores(name), whole.scores(name))
    np.testing.assert_array_equal(resumed.suggestions()[0], whole.suggestions()[0])


def test_a_state_of_other_settings_or_a_damaged_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="this state is of a tracker with"):
        Tracker(3).load_state_dict(Tracker(4).state_dict())
    path = tmp_path / "tracker.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a file that undermargin saved"):
        Tracker.load(path)


def test_a_tracker_that_has_seen_nothing_saves_loads_and_scores(tmp_path):
    Tracker(2).save(tmp_path / "empty")
    assert np.isnan(Tracker.load(tmp_path / "empty").scores()).all()


def test_until_epoch_without_epochs_is_an_error():
    tracker = Tracker(2, until_epoch=1)
    tracker.update([[3.0, 0.0]], [0], [0])
    with pytest.raises(ObservationError, match="skip_epochs and until_epoch need epochs"):
        tracker.scores()


@pytest.mark.parametrize("bounds", [{"skip_epochs": 1}, {"until_epoch": 2}])
def test_trackers_that_each_left_out_epochs_are_not_merged(bounds):
    first, second = Tracker(1, **bounds), Tracker(1, **bounds)
    for tracker, margins in ((first, (1.0, 2.0)), (second, (3.0, 4.0))):
        for margin in margins:
            tracker.update([[margin, 0.0]], [0], [0])
            tracker.end_epoch()
    with pytest.raises(InputError, match=r"both trackers have ended epochs \(2 and 2\)"):
        first.merge(second)
    fresh = Tracker(1, **bounds)
    fresh.merge(second)
    assert fresh.scores() == second.scores()


def test_a_warning_about_an_unknown_id_calls_it_an_id():
    tracker = Tracker(2, ids=[100, 200])
    tracker.update([[3.0, 0.0]], [0], [300])
    with pytest.warns(UndermarginWarning, match=r"ids are not among those given as Tracker\(n, ids="):
        tracker.scores()


def test_a_state_that_is_none_is_refused():
    with pytest.raises(InputError, match="this state is of a tracker with settings None"):
        Tracker(2).load_state_dict({})


def test_an_empty_tensor_of_whatever_type_is_an_empty_batch():
    tracker = Tracker(2)
    tracker.update(torch.zeros(0, 3), torch.tensor([]), torch.tensor([]))
    assert np.isnan(tracker.scores()).all()


def named(ids, **settings):
    """A tracker of four samples by these names that has seen them all, margins 1 to 4 by name."""
    tracker = Tracker(4, ids=ids, **settings)
    tracker.update([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]], [0] * 4, sorted(ids))
    return tracker


@pytest.mark.parametrize("names", [list("abcd"), [10, 20, 30, 40]])
def test_a_state_goes_on_only_with_the_same_ids_in_the_same_order(names, tmp_path):
    tracker = named(names)
    other = Tracker(4, ids=names[::-1])
    for refused in (other, Tracker(4, ids=[1, 2, 3, 4])):
        with pytest.raises(InputError, match="the same position means different samples"):
            refused.load_state_dict(tracker.state_dict())
    with pytest.raises(InputError, match="the same position means different samples"):
        Tracker(4, ids=names).load_state_dict(Tracker(4).state_dict())
    for refused in (other, Tracker(4)):
        with pytest.raises(InputError, match="trackers differ in their ids"):
            tracker.merge(refused)
    tracker.save(tmp_path / "t.safetensors")
    without = Tracker.load(tmp_path / "t.safetensors")
    assert without.scores().tolist() == [1, 2, 3, 4]  # to be read
    with pytest.raises(InputError, match="have ids; pass them again"):
        without.update([[1.0, 0.0]], [0], [1])
    again = Tracker.load(tmp_path / "t.safetensors", ids=names)
    again.update([[3.0, 0.0]], [0], names[:1])
    assert again.scores().tolist() == [2, 2, 3, 4]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch's own, of its compiler
def test_a_compiled_training_step_stays_compiled_and_is_watched():
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    tracker, plainly, model = Tracker(8), Tracker(8), torch.nn.Linear(4, 3)

    def step(x, labels, indices):
        logits = model(x)
        tracker.update(logits, labels, indices)
        return torch.nn.functional.cross_entropy(logits, labels)

    compiled = torch.compile(step, backend=backend)
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):
        x, labels = torch.randn(8, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator)
        compiled(x, labels, torch.arange(8)).backward()
        plainly.update(model(x), labels, torch.arange(8))
    np.testing.assert_allclose(tracker.scores(), plainly.scores(), rtol=1e-6)
    assert len(graphs) == 2  # what comes before the update, and what comes behind it


def test_one_number_is_the_logit_of_a_batch_of_one():
    tracker = Tracker(4)
    tracker.update(torch.tensor(0.5), torch.tensor(1), torch.tensor(3))
    assert tracker.scores()[3] == 0.5


def test_an_output_object_in_place_of_logits_says_what_to_pass():
    class Output:
        logits = LOGITS

    for given in (Output(), (LOGITS, LOGITS[:1])):
        with pytest.raises(InputError, match=r"expected a tensor \(batch, classes\)\. .* pass its logits"):
            Tracker(5).update(given, LABELS, INDICES)


def test_a_state_that_lacks_a_part_is_refused_and_changes_nothing(tmp_path):
    tracker = Tracker(5)
    tracker.update(LOGITS, LABELS, INDICES)
    state = tracker.state_dict()
    fresh = Tracker(5)
    with pytest.raises(InputError, match="the state lacks epochs"):
        fresh.load_state_dict({name: value for name, value in state.items() if name != "epochs"})
    assert np.isnan(fresh.scores()).all()
    save_tensors(tmp_path / "other.safetensors", {"x": torch.zeros(1)})
    with pytest.raises(InputError, match="does not hold the state of a tracker"):
        Tracker.load(tmp_path / "other.safetensors")


def test_labels_are_waited_for_where_logits_are_on_the_host():
    """A copy to the host that is not waited for would be read before it is there."""
    with FakeTensorMode(), Copies() as copies:
        as_labels(torch.empty(2, dtype=torch.int64, device="cuda"), torch.empty(2, 3))
        as_labels(torch.empty(2, dtype=torch.int64), torch.empty(2, 3, device="cuda"))
    assert copies.are_waited_for == [True, False]


class Copies(TorchDispatchMode):
    """Whether each copy to another device is waited for."""

    def __init__(self):
        super().__init__()
        self.are_waited_for = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._to_copy.default:
            self.are_waited_for.append(not kwargs.get("non_blocking", False))
        return func(*args, **(kwargs or {}))
