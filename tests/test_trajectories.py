import numpy as np
import pytest
import torch

from undermargin import Tracker, Trajectories
from undermargin.errors import InputError


def test_trajectories_hold_every_epochs_margins_and_the_chosen_samples_logits(tmp_path):
    tracker = Tracker(3, trajectories=Trajectories(tmp_path / "t", logits_of=[2, 0]))
    for scale in (1.0, 2.0):
        tracker.update(torch.tensor([[3.0, 1.0], [0.0, 4.0]]) * scale, [0, 0], [0, 2])
        tracker.end_epoch()
    recorded = Trajectories.open(tmp_path / "t")
    np.testing.assert_array_equal(recorded.of([0, 1, 2]), [[2, np.nan, -4], [4, np.nan, -8]])
    np.testing.assert_array_equal(recorded.logits(), [[[0, 4], [3, 1]], [[0, 8], [6, 2]]])
    assert recorded.signals == ["margin"]


def test_epochs_that_are_not_averaged_are_recorded_all_the_same(tmp_path):
    tracker = Tracker(1, skip_epochs=1, until_epoch=2, trajectories=Trajectories(tmp_path / "t"))
    for margin in (5.0, 1.0, 7.0):
        tracker.update([[margin, 0.0]], [0], [0])
        tracker.end_epoch()
    assert tracker.scores().tolist() == [1.0]
    assert Trajectories.open(tmp_path / "t").of([0]).ravel().tolist() == [5.0, 1.0, 7.0]


def test_a_second_training_in_the_same_folder_leaves_nothing_of_the_first(tmp_path):
    for margins in ((5.0, 6.0, 7.0), (1.0, 2.0)):
        tracker = Tracker(1, trajectories=Trajectories(tmp_path / "t"))
        for margin in margins:
            tracker.update([[margin, 0.0]], [0], [0])
            tracker.end_epoch()
    assert Trajectories.open(tmp_path / "t").of([0]).ravel().tolist() == [1.0, 2.0]


def test_logits_of_a_sample_that_does_not_exist_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"names sample 5, expected 0\.\.1"):
        Tracker(2, trajectories=Trajectories(tmp_path, logits_of=[5]))


def test_what_was_not_recorded_is_an_error(tmp_path):
    with pytest.raises(InputError, match="holds no trajectories"):
        Trajectories.open(tmp_path)
    tracker = Tracker(1, trajectories=Trajectories(tmp_path / "t"))
    tracker.update([[1.0, 0.0]], [0], [0])
    tracker.end_epoch()
    with pytest.raises(InputError, match="recorded are margin"):
        Trajectories.open(tmp_path / "t").of([0], "loss")
    with pytest.raises(InputError, match="logits_of="):
        Trajectories.open(tmp_path / "t").logits()


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    strangers = [tmp_path / name for name in ("photos-2024.npy", "my-data.npy", "epoch-notes.npy")]
    for path in strangers:
        path.write_bytes(b"")
    tracker = Tracker(1, trajectories=Trajectories(tmp_path))
    tracker.update([[1.0, 0.0]], [0], [0])
    tracker.end_epoch()
    assert all(path.exists() for path in strangers)
    assert Trajectories.open(tmp_path).of([0]).tolist() == [[1.0]]


def halfway(logits_of, folder):
    """A tracker of three samples in mid-epoch, which has seen samples 1 and 2."""
    tracker = Tracker(3, trajectories=Trajectories(folder, logits_of=logits_of))
    tracker.update([[3.0, 1.0], [0.0, 4.0]], [0, 0], [1, 2])
    return tracker


def test_logits_of_a_resumed_epoch_are_those_of_the_chosen_samples(tmp_path):
    same = Tracker(3, trajectories=Trajectories(tmp_path / "a", logits_of=[1]))
    same.load_state_dict(halfway([1], tmp_path / "b").state_dict())
    same.end_epoch()
    assert Trajectories.open(tmp_path / "a").logits().tolist() == [[[3.0, 1.0]]]
    others = Tracker(3, trajectories=Trajectories(tmp_path / "c", logits_of=[2, 0]))
    others.load_state_dict(halfway([1], tmp_path / "d").state_dict())
    others.update([[7.0, 0.0]], [0], [0])
    others.end_epoch()
    unseen, seen = Trajectories.open(tmp_path / "c").logits()[0]
    assert np.isnan(unseen).all()  # it was observed before it was chosen
    assert seen.tolist() == [7.0, 0.0]


def test_trackers_that_record_other_samples_do_not_merge(tmp_path):
    for others in ([], [0]):
        with pytest.raises(InputError, match="full logits of different samples"):
            halfway([1], tmp_path / "a").merge(halfway(others, tmp_path / "b"))


def test_logits_of_epochs_in_which_others_were_chosen_are_nan(tmp_path):
    for epoch, chosen in enumerate(([], [1], [1, 2], [1, 2])):
        trajectories = Trajectories(tmp_path, logits_of=chosen)
        trajectories.describe(["margin"], 3)
        trajectories.write(epoch, (3, 1), [(slice(0, 3), np.zeros((3, 1), np.float32))])
        if chosen:
            trajectories.write_logits(epoch, np.full((len(chosen), 4), epoch, np.float32))
    logits = trajectories.logits()
    assert logits.shape == (4, 2, 4)
    np.testing.assert_array_equal(logits[:, 0, 0], [np.nan, np.nan, 2, 3])
