"""How networks and trees are trained: streamed or not, alone or in several processes, stopped when it is enough."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import safetensors
import torch
from PIL import Image
from scipy.stats import spearmanr
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier

from undermargin import Verdicts, noise, scan
from undermargin.errors import FolderError, InputError, ModelError, TrainingError
from undermargin.procedure import folds
from undermargin.report import describe
from undermargin.scans.folder import Folder
from undermargin.sources.pixels import Pixels
from undermargin.sources.samples import Reading
from undermargin.sources.source import load
from undermargin.storage.tensors import load_tensors, save_tensors
from undermargin.tracking.trajectories import Trajectories
from undermargin.training.augmentation import Augmentation
from undermargin.training.boosting import BoostingPlan
from undermargin.training.engine import Budget
from undermargin.training.fold import Task, train_fold
from undermargin.training.network import NetworkPlan, accelerator
from undermargin.training.side_by_side import train_side_by_side
from undermargin.training.stop import Stop, is_check
from undermargin.verdicts import metrics


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in four clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(800, n_features=8, centers=4, cluster_std=2.0, random_state=0)
    labels = noise.uniform(true_labels, 0.2, 4, seed=0)
    return x.astype(np.float32), labels, labels != true_labels


@pytest.fixture
def photos(tmp_path):
    """Noisy squares, red and blue, in class folders."""
    rng = np.random.default_rng(0)
    for name, colour in (("red", (180, 60, 60)), ("blue", (60, 60, 180))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(30):
            pixels = (np.array(colour) + rng.integers(-50, 50, (32, 32, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def test_images_that_do_not_fit_into_memory_are_streamed_and_give_the_same_verdicts(photos, tmp_path):
    spilled = load(photos, Reading(memory=1000, spill=tmp_path / "pixels.bin"))
    whole = load(photos)
    assert isinstance(spilled.inputs, Pixels)
    np.testing.assert_array_equal(spilled.inputs[[3, 59, 0]], whole.inputs[[3, 59, 0]])
    np.testing.assert_array_equal(spilled.inputs[50:], whole.inputs[50:])
    np.testing.assert_array_equal(spilled.inputs[7], whole.inputs[7])
    assert spilled.fingerprint() == whole.fingerprint()
    streamed = scan(photos, tmp_path / "streamed", epochs=2, memory=1000).verdicts
    in_memory = scan(photos, tmp_path / "in_memory", epochs=2).verdicts
    np.testing.assert_array_equal(streamed.scores, in_memory.scores)
    assert not list((tmp_path / "streamed").glob("*.bin"))


def test_a_file_of_pixels_that_was_cut_off_is_an_error(tmp_path):
    (tmp_path / "pixels.bin").write_bytes(bytes(20))
    with pytest.raises(InputError, match="ends before image 2 of 3"):
        Pixels(tmp_path / "pixels.bin", (3, 2, 2, 2))[[2]]


def test_without_a_place_on_disk_too_many_images_are_an_error(photos):
    with pytest.raises(InputError, match="60 images take 184,320 bytes as pixels, but only 10 are allowed"):
        load(photos, Reading(memory=10))


def test_a_shifted_image_is_one_of_all_shifts_and_a_flipped_one_is_a_mirror():
    generator = torch.Generator().manual_seed(0)
    images = torch.arange(1, 13, dtype=torch.uint8).view(3, 4, 1).expand(200, 3, 4, 2)
    padded = np.pad(images[0, :, :, 0].numpy(), 1)
    shifts = {padded[top : top + 3, left : left + 4].tobytes() for top in range(3) for left in range(3)}
    seen, other = Augmentation(pixels=1, flips=False)((images, images), generator)
    assert {image[:, :, 1].numpy().tobytes() for image in seen} == shifts
    assert other is images  # only the first of the inputs are images
    image = images[0, :, :, 0].numpy()
    (mirrored,) = Augmentation(pixels=0, flips=True)((images,), generator)
    assert {one[:, :, 0].numpy().tobytes() for one in mirrored} == {image.tobytes(), image[:, ::-1].tobytes()}


def test_checks_come_four_to_an_octave():
    assert [epochs for epochs in range(1, 65) if is_check(epochs)] == [
        8,
        10,
        12,
        14,
        16,
        20,
        24,
        28,
        32,
        40,
        48,
        56,
        64,
    ]


def test_it_stops_when_the_ranking_is_that_of_half_as_many_epochs():
    rng = np.random.default_rng(0)
    truth, stop = rng.normal(size=500), Stop()
    total = np.zeros(500)
    history = {}
    for epoch in range(1, 200):
        total += truth + rng.normal(size=500)
        history[epoch] = total / epoch
        if stop.is_settled(epoch, history[epoch]):
            break
    assert is_check(epoch)
    earlier = [e for e in range(8, epoch) if is_check(e)]
    assert of_lower_half(history, epoch) >= 0.95
    assert earlier
    assert all(of_lower_half(history, e) < 0.95 for e in earlier)


def of_lower_half(history, epoch):
    lower = np.argsort(history[epoch])[:250]
    return pd.Series(history[epoch][lower]).corr(pd.Series(history[epoch // 2][lower]), method="spearman")


def test_a_stop_rule_that_goes_on_from_a_checkpoint_decides_the_same():
    rng = np.random.default_rng(1)
    whole, parts = Stop(), Stop()
    for epoch in range(1, 33):
        scores = rng.normal(size=50).astype(np.float32) / epoch + np.arange(50)
        resumed = Stop()
        resumed.load(parts.tensors())
        parts = resumed
        assert whole.is_settled(epoch, scores) == parts.is_settled(epoch, scores)
        assert whole.was_settled == parts.was_settled


def test_saved_epochs_are_those_that_were_not_run(blobs, tmp_path):
    x, labels, _ = blobs
    scan((np.tile(x, (6, 1)), np.tile(labels, 6)), tmp_path / "scan")  # small data are trained to the end
    summary = json.loads((tmp_path / "scan" / "summary.json").read_text())
    planned = json.loads((tmp_path / "scan" / "config.json").read_text())["budget"]["epochs"]
    run = [len((tmp_path / "scan" / f"fold{fold}" / "log.jsonl").read_text().splitlines()) for fold in (0, 1)]
    assert summary["epochs"] == run
    assert summary["saved_epochs"] == 2 * planned - sum(run) > 0


def test_with_a_fixed_number_of_epochs_nothing_is_saved(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan", epochs=25)
    summary = json.loads((tmp_path / "scan" / "summary.json").read_text())
    assert (summary["epochs"], summary["saved_epochs"]) == ([25] * 5, 0)


def test_boosted_trees_are_watched_round_by_round(blobs, tmp_path):
    x, labels, is_flipped = blobs
    seen = []
    plan = BoostingPlan(x, np.zeros(8, bool), Budget(5, 800, learning_rate=0.1))
    engine = plan.start(labels, 4, seed=0, budget=plan.budget)
    for round_ in range(5):
        engine.run_epoch(round_, lambda logits, *_: seen.append(logits.numpy()))
    for rounds in (1, 5):  # scikit-learn's own model of so many rounds
        trees = HistGradientBoostingClassifier(
            max_iter=rounds, learning_rate=0.1, l2_regularization=1.0, early_stopping=False, random_state=0
        ).fit(x, labels)
        np.testing.assert_allclose(seen[rounds - 1], trees.decision_function(x), atol=1e-5)
    np.testing.assert_allclose(engine.predict(np.arange(10)), seen[-1][:10], atol=1e-5)
    found = metrics.identification(scan((x, labels), tmp_path / "scan", model="boosting").verdicts, is_flipped)
    assert found["average_precision"] > 0.9


def test_trees_that_never_saw_a_class_still_have_its_output(blobs):
    x, labels, _ = blobs
    plan = BoostingPlan(x, np.zeros(8, bool), Budget(2, 800, learning_rate=0.1))
    rows = np.flatnonzero(labels < 2)
    engine = plan.start(labels, 4, seed=0, budget=plan.budget, rows=rows)
    engine.run_epoch(1)
    logits = engine.predict(rows)
    assert logits.shape == (len(rows), 4)
    assert set(logits.argmax(1)) == {0, 1}


@pytest.mark.parametrize("model", ["network", "linear", "boosting"])
def test_every_model_for_embeddings(model, blobs, tmp_path):
    x, labels, is_flipped = blobs
    found = metrics.identification(scan((x, labels), tmp_path / "scan", model=model).verdicts, is_flipped)
    assert found["average_precision"] > 0.9


def test_a_model_of_ones_own_in_our_loop(blobs, photos, tmp_path):
    x, labels, is_flipped = blobs
    verdicts = scan((x, labels), tmp_path / "vectors", model=lambda outputs: torch.nn.Linear(8, outputs)).verdicts
    assert metrics.identification(verdicts, is_flipped)["average_precision"] > 0.9
    shapes = set()

    class Flat(torch.nn.Linear):
        def forward(self, images):
            shapes.add((images.dtype, tuple(images.shape[1:])))
            return super().forward(images.flatten(1))

    scan(photos, tmp_path / "images", model=lambda outputs: Flat(3 * 32 * 32, outputs), epochs=2)
    assert shapes == {(torch.float32, (3, 32, 32))}


def test_a_model_of_ones_own_is_trained_in_this_process(tmp_path):
    images, labels = np.zeros((2000, 8, 8), np.uint8), np.arange(2000) % 2
    outlooks = []
    torch.set_num_threads(2)
    try:
        scan((images, labels), tmp_path / "own", model=small, epochs=1, jobs=0, on_start=outlooks.append)
        scan((images, labels), tmp_path / "ours", epochs=1, jobs=0, on_start=outlooks.append)
    finally:
        torch.set_num_threads(1)
    assert [outlook.jobs for outlook in outlooks] == [1, 2]


def small(num_outputs):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, num_outputs))


def test_a_model_that_does_not_exist_is_an_error_that_lists_those_that_do(blobs, tmp_path):
    with pytest.raises(ModelError, match="unknown model .resnet9."):
        scan(blobs[:2], tmp_path / "scan", model="resnet9")


def tasks(labels, path):
    for fold in folds(labels, 4, seed=0):
        (path / str(fold.number)).mkdir(parents=True)
        yield Task(fold, fold.number, path / str(fold.number), stops=False)


def network(x):
    return NetworkPlan("linear", Linear8(), (torch.from_numpy(x),), Budget(3, 64, learning_rate=0.01))


class Linear8:
    """Makes a network; a class, since it goes to another process."""

    def __call__(self, num_outputs):
        return torch.nn.Linear(8, num_outputs)


class Broken:
    def __call__(self, num_outputs):
        raise RuntimeError("no such network")


def test_folds_side_by_side_give_the_scores_of_one_after_the_other(blobs, tmp_path):
    x, labels, _ = blobs
    heard = []
    both = list(tasks(labels, tmp_path / "both"))
    train_side_by_side(network(x), both, 2, heard.append)
    alone = list(tasks(labels, tmp_path / "alone"))
    for task in alone:
        train_fold(network(x), task, lambda progress: None)
    for first, second in zip(both, alone, strict=True):
        np.testing.assert_array_equal(first.run().scores, second.run().scores)
    assert sorted((one.fold, one.epoch) for one in heard) == [(fold, epoch) for fold in (0, 1) for epoch in (1, 2, 3)]


def test_a_fold_that_is_left_alone_ends_as_if_both_had_been_trained_together(photos, tmp_path):
    words = ["--epochs", "3", "--jobs", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command(photos, tmp_path / "whole", *words, environment=environment)
    command(photos, tmp_path / "broken", *words, environment=environment)
    for name in ("scores.parquet", "checkpoint.safetensors", "log.jsonl"):
        (tmp_path / "broken" / "fold1" / name).unlink()
    command(photos, tmp_path / "broken", *words, environment=environment)
    whole, again = (Verdicts.load(tmp_path / name / "verdicts.parquet") for name in ("whole", "broken"))
    np.testing.assert_array_equal(whole.scores, again.scores)


def test_what_goes_wrong_in_a_folds_process_is_said(blobs, tmp_path):
    x, labels, _ = blobs
    plan = NetworkPlan("broken", Broken(), (torch.from_numpy(x),), Budget(3, 64))
    with pytest.raises(TrainingError, match="fold . *: RuntimeError: no such network"):
        train_side_by_side(plan, list(tasks(labels, tmp_path)), 2, lambda progress: None)


def test_the_outlook_estimates_the_time_before_training_begins(blobs, tmp_path):
    outlooks, epochs = [], []
    scan(blobs[:2], tmp_path / "scan", epochs=4, on_start=outlooks.append, on_epoch=epochs.append)
    assert outlooks[0].seconds > 0
    assert len(epochs) == 20  # four in each of five folds
    assert all(np.isfinite(one.cutoff) for one in epochs)
    scan(blobs[:2], tmp_path / "scan", epochs=4, on_start=outlooks.append)
    assert outlooks[1].seconds == 0


def test_half_precision_is_close_to_full(array_file, blobs, tmp_path):
    full = scan(blobs[:2], tmp_path / "full", epochs=3).verdicts
    command(array_file, tmp_path / "half", "--epochs", "3", "--mixed-precision", "bf16")  # a process has one precision
    half = Verdicts.load(tmp_path / "half" / "verdicts.parquet")
    assert (full.scores != half.scores).any()
    assert spearmanr(full.scores, half.scores).statistic > 0.95


def test_half_precision_where_the_number_of_processes_is_chosen(photos, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command(photos, tmp_path / "scan", "--epochs", "1", "--mixed-precision", "bf16", environment=environment)
    assert (tmp_path / "scan" / "verdicts.parquet").is_file()


def test_a_second_precision_in_one_process_is_refused(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "full", epochs=1)
    with pytest.raises(TrainingError, match="precision 'bf16' is not available in this process"):
        scan(blobs[:2], tmp_path / "half", epochs=1, mixed_precision="bf16")


@pytest.fixture
def array_file(blobs, tmp_path):
    x, labels, _ = blobs
    np.savez(tmp_path / "blobs.npz", x=x, y=labels)
    return tmp_path / "blobs.npz"


def command(path, out, *words, launch=(), environment=None):
    scan_words = [sys.executable, *launch, "-m", "undermargin", "scan", str(path), "--out", str(out), "--quiet", *words]
    result = subprocess.run(scan_words, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]


def test_two_processes_scan_together_under_torchrun(array_file, blobs, tmp_path):
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command(array_file, tmp_path / "scan", "--epochs", "6", launch=launch)
    verdicts = Verdicts.load(tmp_path / "scan" / "verdicts.parquet")
    assert (verdicts.judged_by >= 1).all()
    assert metrics.identification(verdicts, blobs[2])["average_precision"] > 0.9
    # each trained on half of every batch: not what one process alone would have done twice
    alone = scan(array_file, tmp_path / "alone", epochs=6).verdicts
    assert (verdicts.scores != alone.scores).any()
    assert json.loads((tmp_path / "scan" / "config.json").read_text())["num_processes"] == 2
    with pytest.raises(FolderError, match="different settings: num processes 2, now 1"):
        scan(array_file, tmp_path / "scan", epochs=6)


def test_a_frozen_pretrained_network_for_texts(tmp_path):
    from tests.test_pretrained import save_bert

    animals, tools = ["the cat sat", "the dog ran"], ["a saw cut", "a nail bent"]
    texts = [*animals * 20, *tools * 20]
    save_bert(tmp_path / "bert")
    labels = ["animal"] * 40 + ["tool"] * 40
    verdicts = scan(
        pd.DataFrame({"text": texts, "label": labels}), tmp_path / "scan", model=f"hf:{tmp_path / 'bert'}"
    ).verdicts
    assert len(verdicts) == 80
    assert "hf:" in json.loads((tmp_path / "scan" / "config.json").read_text())["model"]


def test_a_pretrained_name_that_nobody_has_is_refused_before_data_are_loaded(tmp_path):
    with pytest.raises(ModelError, match="unknown model 'resnet9'"):
        scan(tmp_path / "there is nothing here", tmp_path / "scan", model="resnet9")


def test_margins_at_every_epoch_are_recorded_for_the_report(array_file, tmp_path):
    verdicts = scan(array_file, tmp_path / "scan", epochs=3, records=True).verdicts
    recorded = Trajectories.open(tmp_path / "scan" / "fold0" / "trajectories")
    margins = recorded.of(range(len(verdicts)))
    judged = ~np.isnan(verdicts.fold_scores[0])
    np.testing.assert_allclose(margins.mean(0)[judged], verdicts.fold_scores[0][judged], rtol=1e-4, atol=1e-4)
    assert describe(Folder.open(tmp_path / "scan"))["trajectories"]


def test_a_scan_that_was_stopped_early_is_not_one_of_exactly_so_many_epochs(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan")
    planned = json.loads((tmp_path / "scan" / "config.json").read_text())["budget"]["epochs"]
    with pytest.raises(FolderError, match="different settings: epochs not set, now"):
        scan(blobs[:2], tmp_path / "scan", epochs=planned)


def test_another_network_of_ones_own_is_another_scan(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan", model=lambda outputs: torch.nn.Linear(8, outputs), epochs=1)
    with pytest.raises(FolderError, match="different settings: model the user's own"):
        scan(blobs[:2], tmp_path / "scan", model=lambda outputs: torch.nn.Linear(8, outputs, bias=False), epochs=1)


def test_tied_weights_can_be_kept(blobs, tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self, outputs):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
            self.second.weight = self.first.weight
            self.output = torch.nn.Linear(8, outputs)

        def forward(self, x):
            return self.output(self.second(self.first(x).relu()).relu())

    scan(blobs[:2], tmp_path / "scan", model=Tied, epochs=2)
    assert (tmp_path / "scan" / "fold1" / "checkpoint.safetensors").is_file()


@pytest.mark.parametrize("kind", ["table", "streamed"])
def test_a_training_of_ones_own_on_every_kind_of_data(kind, photos, tmp_path):
    seen = []

    def train(job):
        for x, label, index in (job.dataset[position] for position in range(len(job.dataset))):
            seen.append(x)
            logits = torch.zeros(1, job.num_outputs, requires_grad=True)
            job.tracker.update(logits + torch.eye(job.num_outputs)[label], [label], [index])
        job.tracker.end_epoch()

    frame = pd.DataFrame({"age": [1.0, 5.0] * 10, "city": ["a", "b"] * 10, "label": ["x", "y"] * 10})
    source = frame if kind == "table" else photos
    verdicts = scan(source, tmp_path / "scan", train=train, memory=1000, folds=2).verdicts
    assert len(seen) == 2 * len(verdicts)
    assert (seen[1][0].tolist() == [5.0]) if kind == "table" else (seen[0].shape == (32, 32, 3))


def test_a_full_disk_is_one_line(blobs, tmp_path, monkeypatch):
    def full(*_, **__):
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(FolderError, match="cannot be written: No space left on device"):
        scan(blobs[:2], tmp_path / "scan", epochs=1)


def test_a_line_of_the_log_that_was_cut_off_does_no_harm(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan", epochs=2)
    with (tmp_path / "scan" / "fold0" / "log.jsonl").open("a") as file:
        file.write('{"epoch": 7, "sec')
    scan(blobs[:2], tmp_path / "scan", epochs=2)
    assert json.loads((tmp_path / "scan" / "summary.json").read_text())["epochs"] == [2] * 5


def test_a_checkpoint_remembers_how_gradients_are_scaled_and_another_training_does_not(monkeypatch):
    """With fp16, which needs a GPU; here with a scaler put in by hand."""
    scaler = torch.amp.GradScaler("cpu")
    monkeypatch.setattr(accelerator("no"), "scaler", scaler)
    labels = np.array([0, 1] * 4)
    chosen = NetworkPlan("linear", lambda outputs: torch.nn.Linear(2, outputs), (torch.ones(8, 2),), Budget(1, 4))
    first = chosen.start(labels, 2, seed=0, budget=chosen.budget)
    scaler.load_state_dict(scaler.state_dict() | {"scale": 128.0})
    saved = first.tensors()
    again = chosen.start(labels, 2, seed=0, budget=chosen.budget)
    assert scaler.get_scale() == 65536  # torch's own beginning
    again.load(saved)
    assert scaler.get_scale() == 128


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_convolutions_go_on_from_a_file_as_if_they_had_never_stopped(optimizer, tmp_path):
    def begun():
        def make(outputs):
            return torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(12, outputs))

        images = torch.rand(8, 2, 4, 4, generator=torch.Generator().manual_seed(0))
        budget = Budget(2, 4, learning_rate=0.1, optimizer=optimizer)
        return NetworkPlan("conv", make, (images,), budget).start(np.array([0, 1] * 4), 2, seed=0, budget=budget)

    whole, stopped, resumed = begun(), begun(), begun()
    whole.run_epoch(0)
    whole.run_epoch(1)
    stopped.run_epoch(0)
    save_tensors(tmp_path / "checkpoint", stopped.tensors())
    resumed.load(load_tensors(tmp_path / "checkpoint")[1])
    resumed.run_epoch(1)
    rows = np.arange(8)
    assert np.array_equal(resumed.predict(rows), whole.predict(rows))
