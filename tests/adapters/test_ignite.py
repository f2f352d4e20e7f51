"""An Ignite engine, observed: what it sees, what it leaves alone, what a checkpoint keeps."""

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tests.adapters.torch_support import (
    BATCH,
    NUM_SAMPLES,
    Blobs,
    Stream,
    assert_equal_scores,
    assert_page_shows,
    aum,
    error_without,
    loader,
    needs_scan,
    run_example,
)
from undermargin import IndexedDataset, Tracker
from undermargin.adapters.ignite import observe
from undermargin.errors import InputError


class Training:
    """An engine of the user's own, its model and what it saw."""

    def __init__(self, *, as_tuple=False, dropout=0.0):
        torch.manual_seed(0)
        dropout = torch.nn.Dropout(dropout)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), dropout, torch.nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.as_tuple = as_tuple
        self.stream, self.losses = Stream(), []
        self.engine = Engine(self.step)

    def step(self, engine, batch):
        x, labels, _ = batch.values() if isinstance(batch, dict) else batch
        logits = self.model(x)
        loss = F.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.stream.write(engine.state.epoch, x, labels, logits)
        self.losses.append(loss.item())
        return (loss.item(), logits) if self.as_tuple else {"loss": loss.item(), "logits": logits}

    def run(self, batches=None):
        batches = loader(BATCH) if batches is None else batches
        self.engine.add_event_handler(Events.EPOCH_STARTED, lambda: batches.sampler.set_epoch(self.engine.state.epoch))
        self.engine.run(batches, max_epochs=4)


WAYS = {
    "as the views have it": (False, False, {}),
    "by position": (True, False, {"logits": 1, "labels": 1, "indices": 2}),
    "by key": (False, True, {"logits": "logits", "labels": "label", "indices": "index"}),
    "by function": (True, False, {"logits": lambda output: output[1], "indices": lambda batch: batch[2]}),
}


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_those_of_a_plain_loop_over_the_same_batches(way):
    as_tuple, as_mapping, options = WAYS[way]
    training, tracker = Training(as_tuple=as_tuple), Tracker(NUM_SAMPLES)
    observe(training.engine, tracker, **options)
    training.run(loader(BATCH, as_mapping=as_mapping))
    assert_equal_scores(tracker.scores(), aum(training.stream.rows))
    assert tracker.epoch == 4


def test_losses_and_weights_are_bit_equal_with_and_without_observing():
    ends = []
    for is_observed in (False, True):
        training = Training(dropout=0.2)
        if is_observed:
            observe(training.engine, Tracker(NUM_SAMPLES))
        training.run()
        ends.append((training.losses, training.model.state_dict()))
    assert ends[0][0] == ends[1][0]
    assert all(torch.equal(ends[0][1][name], ends[1][1][name]) for name in ends[0][1])


# six iterations an epoch
SAVES = {
    "mid-epoch": Events.ITERATION_COMPLETED(once=9),
    "last iteration": Events.ITERATION_COMPLETED(once=12),
    "epoch end": Events.EPOCH_COMPLETED(once=2),
}


@pytest.mark.parametrize("moment", SAVES)
def test_a_training_resumed_from_a_checkpoint_ends_with_the_scores_of_an_uninterrupted_one(moment, tmp_path):
    def prepared():
        training, tracker = Training(), Tracker(NUM_SAMPLES, suggest=3)
        saved = {"model": training.model, "optimizer": training.optimizer, "engine": training.engine}
        return training, tracker, saved | {"tracker": observe(training.engine, tracker)}

    whole, tracker, saved = prepared()
    saving = Checkpoint(saved, DiskSaver(tmp_path), filename_pattern="part.pt")
    whole.engine.add_event_handler(SAVES[moment], saving)
    whole.run()
    assert_equal_scores(tracker.scores(), aum(whole.stream.rows))
    again, resumed, saved = prepared()
    Checkpoint.load_objects(saved, torch.load(tmp_path / "part.pt", weights_only=True))
    batches = loader(BATCH)
    batches.skipped = again.engine.state.iteration % len(batches)
    again.run(batches)
    assert_equal_scores(resumed.scores(), tracker.scores())
    assert resumed.suggestions()[0].tolist() == tracker.suggestions()[0].tolist()
    assert resumed.epoch == 4


def test_an_engine_that_stops_in_mid_epoch_ends_the_epoch():
    training, tracker = Training(), Tracker(NUM_SAMPLES)
    observe(training.engine, tracker)
    training.engine.add_event_handler(Events.ITERATION_COMPLETED(once=9), lambda: training.engine.terminate())
    training.run()
    assert tracker.epoch == 2
    assert_equal_scores(tracker.scores(), aum(training.stream.rows))


def test_an_output_without_logits_is_an_error_that_says_what_to_return():
    model = torch.nn.Linear(4, 3)

    def prepare(batch, device, non_blocking):
        return batch[:2]

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    trainer = create_supervised_trainer(model, optimizer, F.cross_entropy, prepare_batch=prepare)
    observe(trainer, Tracker(NUM_SAMPLES))
    with pytest.raises(InputError, match="output is a float without an entry 'logits'.*output_transform=lambda"):
        trainer.run(DataLoader(IndexedDataset(Blobs()), BATCH))
    training = Training(as_tuple=True)
    observe(training.engine, Tracker(NUM_SAMPLES), logits=3)
    with pytest.raises(InputError, match="no logits at 3 of a tuple with 2 entries"):
        training.run()


def test_without_ignite_the_adapter_names_the_extra():
    assert error_without("ignite", "ignite").endswith('ignite is not installed. Run: pip install "undermargin[ignite]"')


@needs_scan
def test_the_example_finds_the_flipped_labels(tmp_path):
    run_example("ignite_digits", tmp_path)


def test_the_page_shows_the_example():
    assert_page_shows("ignite", "ignite_digits")
