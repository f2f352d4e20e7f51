"""The Lightning callback on real trainers: what it observes, what it leaves alone, what a checkpoint keeps."""

from collections import Counter
from contextlib import suppress
from importlib.metadata import entry_points

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader

from tests.adapters.lightning_parts import Classifier, Outage, callback, fit
from tests.adapters.torch_support import (
    BATCH,
    NUM_SAMPLES,
    Blobs,
    assert_equal_scores,
    assert_page_shows,
    aum,
    error_without,
    loader,
    needs_scan,
    run_example,
    torchrun,
)
from undermargin import IndexedDataset, Tracker
from undermargin.adapters.lightning import TrackerCallback
from undermargin.errors import InputError

# Lightning's own warnings, about the number of workers and the like
pytestmark = pytest.mark.filterwarnings("ignore:::lightning", "ignore:.*:UserWarning:torch")

WAYS = {
    "logits returned, by position": ("logits", False, {"labels": 1, "indices": 2}),
    "logits returned, as the views have it": ("logits", False, {}),
    "submodule, by key": ("loss", True, {"submodule": "net", "labels": "label", "indices": "index"}),
    "submodule, by function": ("loss", False, {"submodule": "net.3", "indices": lambda batch: batch[2]}),
    "hidden index": ("loss", False, {"submodule": "net", "hide_indices": True}),
    "hidden key, manual optimization": ("nothing", True, {"submodule": "net", "hide_indices": True}),
}


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_those_of_a_plain_loop_over_the_same_batches(way, tmp_path):
    returns, as_mapping, options = WAYS[way]
    watching = callback(**options)
    batches = DataLoader(IndexedDataset(Blobs(as_mapping=as_mapping)), BATCH, shuffle=True)
    module = fit(tmp_path, batches, watching, module=Classifier(returns), validation=DataLoader(Blobs(), BATCH))
    assert_equal_scores(watching.tracker.scores(), aum(module.stream.rows))
    assert watching.tracker.epoch == 4
    assert module.num_entries == (2 if watching.hide_indices else 3)
    assert "training_step" not in vars(module)


def test_losses_and_weights_are_bit_equal_with_and_without_the_callback(tmp_path):
    ends = []
    for callbacks in ([], [callback()], [callback(submodule="net", name="hook")]):
        module = fit(tmp_path, loader(BATCH), *callbacks, module=Classifier(dropout=0.2), accumulate_grad_batches=2)
        ends.append((module.losses, module.state_dict()))
    for losses, weights in ends[1:]:
        assert losses == ends[0][0]
        assert all(torch.equal(weights[name], ends[0][1][name]) for name in weights)


# Six batches an epoch. Saved in mid-epoch; after the last batch, when the epoch has not ended; after validation, which
# comes before the epoch's end; at its end.
SAVES = {
    "mid-epoch": ({"every_n_train_steps": 9}, Outage(1, 4)),
    "last batch": ({"every_n_train_steps": 12}, Outage(2, 1)),
    "validation": ({"every_n_epochs": 2, "save_on_train_epoch_end": False}, Outage(2, 1)),
    "epoch end": ({"every_n_epochs": 2, "save_on_train_epoch_end": True}, Outage(2, 1)),
    "finished": ({"every_n_train_steps": 24}, Outage(9, 9)),
}


@pytest.mark.parametrize("moment", SAVES)
def test_a_training_resumed_from_a_checkpoint_ends_with_the_scores_of_an_uninterrupted_one(moment, tmp_path):
    when, outage = SAVES[moment]
    validation = DataLoader(Blobs(), BATCH)
    whole, part, resumed = callback(), callback(), callback()
    module = fit(tmp_path, loader(BATCH), whole, validation=validation)
    saving = ModelCheckpoint(tmp_path, "part", **when)
    with suppress(InterruptedError):
        fit(tmp_path, loader(BATCH), saving, part, outage, validation=validation, enable_checkpointing=True)
    fit(tmp_path, loader(BATCH), resumed, validation=validation, checkpoint=tmp_path / "part.ckpt")
    assert_equal_scores(resumed.tracker.scores(), whole.tracker.scores())
    assert_equal_scores(whole.tracker.scores(), aum(module.stream.rows))
    assert resumed.tracker.suggestions()[0].tolist() == whole.tracker.suggestions()[0].tolist()
    assert resumed.tracker.epoch == 4


def test_two_ranks_count_every_sample_once_an_epoch_and_resume_in_mid_epoch(tmp_path):
    ranks = torchrun(tmp_path, "lightning_worker")
    rows = [row for found in ranks for row in found["rows"]]
    times = Counter((epoch, index) for epoch, index, *_ in rows)
    assert sorted(Counter(times.values()).items()) == [(1, 4 * 50), (2, 4)]  # the sampler repeats one of 51 samples
    for found in ranks:
        assert_equal_scores(found["aum"], aum(rows))
        assert_equal_scores(found["resumed"], found["aum"])
        assert found["resumed_suggested"] == found["suggested"]


def test_the_callbacks_of_two_folds_coexist_in_one_checkpoint(tmp_path):
    first, second = callback(name="fold0"), callback(name="fold1", labels=lambda batch: batch[1] * 0)
    saving = ModelCheckpoint(tmp_path, "both", every_n_train_steps=13)
    fit(tmp_path, loader(BATCH), first, second, saving, enable_checkpointing=True)
    checkpoint = torch.load(tmp_path / "both.ckpt", weights_only=True)
    assert {"TrackerCallback(fold0)", "TrackerCallback(fold1)"} <= set(checkpoint["callbacks"])
    again = callback(name="fold0"), callback(name="fold1", labels=lambda batch: batch[1] * 0)
    fit(tmp_path, loader(BATCH), *again, checkpoint=tmp_path / "both.ckpt")
    assert_equal_scores(again[0].tracker.scores(), first.tracker.scores())
    assert_equal_scores(again[1].tracker.scores(), second.tracker.scores())
    assert (first.tracker.scores() != second.tracker.scores()).any()


ERRORS = {
    "returned no logits.*submodule=": ("loss", {}),
    "no submodule 'head'; it has body, net": ("loss", {"submodule": "head"}),
    "returned None in all 6 steps": ("nothing", {}),
    "no labels at 'y' of a list with 3 entries": ("logits", {"labels": "y"}),
    "no indices at 5": ("logits", {"indices": 5}),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_cannot_be_observed_is_an_error_that_says_what_to_do(message, tmp_path):
    returns, options = ERRORS[message]
    with pytest.raises(InputError, match=message):
        fit(tmp_path, loader(BATCH), callback(**options), module=Classifier(returns))


def test_a_submodule_that_the_step_calls_never_or_twice_is_an_error(tmp_path):
    class Roundabout(Classifier):
        def training_step(self, batch, batch_idx):
            return self.net[3](self.net[:3](batch[0])).sum() + self.body(batch[0]).sum()

    with pytest.raises(InputError, match="submodule 'net' was not called"):
        fit(tmp_path, loader(BATCH), callback(submodule="net"), module=Roundabout("loss"))
    with pytest.raises(InputError, match="submodule 'body' was called twice"):
        fit(tmp_path, loader(BATCH), callback(submodule="body"), module=Roundabout("loss"))


def test_a_batch_without_indices_is_an_error_that_names_the_view(tmp_path):
    with pytest.raises(InputError, match="2 entries, so none of them holds indices. Wrap the data set: IndexedDataset"):
        fit(tmp_path, DataLoader(Blobs(), BATCH), callback())
    with pytest.raises(InputError, match="as a position or a key"):
        TrackerCallback(Tracker(NUM_SAMPLES), indices=len, hide_indices=True)


def test_without_lightning_the_adapter_names_the_extra():
    message = error_without("lightning pytorch_lightning", "lightning")
    assert message.endswith('lightning is not installed. Run: pip install "undermargin[lightning]"')


def test_installing_undermargin_changes_no_trainer():
    factories = {*entry_points(group="lightning.pytorch.callbacks_factory")}
    assert not [factory for factory in factories if "undermargin" in factory.value]


@needs_scan
def test_the_example_finds_the_flipped_labels(tmp_path):
    run_example("lightning_digits", tmp_path)


def test_the_page_shows_the_example():
    assert_page_shows("lightning", "lightning_digits")
