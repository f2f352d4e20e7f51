import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from typer.testing import CliRunner

from tests.watching import written
from undermargin import Procedure, Verdicts, noise, scan
from undermargin.cli import app
from undermargin.errors import FolderError, IdentifyError
from undermargin.models.resnet import SmallResNet
from undermargin.scans.folder import Folder
from undermargin.verdicts import metrics


@pytest.fixture(scope="module")
def blobs():
    """Embeddings in four clouds, a fifth of the labels flipped."""
    x, true_labels = make_blobs(800, n_features=8, centers=4, cluster_std=2.0, random_state=0)
    labels = noise.uniform(true_labels, 0.2, 4, seed=0)
    return x.astype(np.float32), labels, labels != true_labels


def test_embeddings(blobs, tmp_path):
    x, labels, is_flipped = blobs
    verdicts = scan((x, labels), tmp_path / "scan").verdicts
    found = metrics.identification(verdicts, is_flipped)
    assert found["mcc"] > 0.9
    assert found["average_precision"] > 0.95


def test_what_a_scan_leaves_in_its_folder(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan", epochs=3)
    folder = Folder.open(tmp_path / "scan")
    names = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    fold = {"scores.parquet", "checkpoint.safetensors", "log.jsonl"}
    assert names == {
        ".lock", "clock.json", "config.json", "manifest.json", "summary.json", "verdicts.parquet", "verdicts.csv",
        *(f"fold{number}/{name}" for number in range(5) for name in fold),
    }  # fmt: skip
    assert folder.damaged() == []
    config = folder.read_json("config.json")
    assert {"fingerprint", "seed", "versions", "num_threads", "budget", "procedure"} <= set(config)
    summary = folder.read_json("summary.json")
    assert {"num_flagged", "estimated_noise_rate", "classes", "confusions", "seconds", "samples_per_second"} <= set(
        summary
    )
    assert summary["cutoff"]["name"] == "probability"
    assert summary["estimated_mislabeled"]["low"] <= summary["estimated_mislabeled"]["high"]


def test_small_images(tmp_path):
    digits = load_digits()
    images, true_labels = (digits.images[:900] * 15).astype(np.uint8), digits.target[:900]
    labels = noise.uniform(true_labels, 0.2, 10, seed=0)
    verdicts = scan((images, labels), tmp_path / "scan", epochs=15).verdicts
    assert metrics.identification(verdicts, labels != true_labels)["average_precision"] > 0.85


def test_text_and_tables(tmp_path):
    rng = np.random.default_rng(0)
    words = {
        "sport": ["ball", "goal", "team", "win"],
        "food": ["bread", "soup", "salt", "cook"],
        "sea": ["ship", "wave", "sail", "fish"],
    }
    true_labels = rng.permutation(list(words) * 150)
    texts = [" ".join(rng.choice(words[label] + ["the", "and", "a"], 6)) for label in true_labels]
    labels = true_labels.copy()
    labels[:40] = ["food" if label == "sport" else "sport" for label in labels[:40]]
    frame = pd.DataFrame({"text": texts, "label": labels})
    found = metrics.identification(scan(frame, tmp_path / "text").verdicts, labels != true_labels)
    assert found["average_precision"] > 0.9
    frame = pd.DataFrame(
        {
            "length": [len(t) for t in texts],
            "first": [t.split()[0] for t in texts],
            "theme": true_labels,
            "label": labels,
        }
    )
    found = metrics.identification(scan(frame, tmp_path / "table").verdicts, labels != true_labels)
    assert found["average_precision"] > 0.9


def test_the_same_seed_gives_the_same_verdicts_and_another_seed_others(blobs, tmp_path):
    first, again = (scan(blobs[:2], tmp_path / name, epochs=3).verdicts for name in ("a", "b"))
    other = scan(blobs[:2], tmp_path / "c", epochs=3, seed=1).verdicts
    np.testing.assert_array_equal(first.scores, again.scores)
    assert (first.scores != other.scores).any()


def test_a_folder_of_other_data_or_other_settings_is_refused(blobs, tmp_path):
    x, labels, _ = blobs
    scan((x, labels), tmp_path / "scan", epochs=2)
    with pytest.raises(FolderError, match="a scan of other data"):
        scan((x + 1, labels), tmp_path / "scan", epochs=2)
    with pytest.raises(FolderError, match="different settings: epochs 2, now 3"):
        scan((x, labels), tmp_path / "scan", epochs=3)


def test_a_finished_scan_is_not_trained_again(blobs, tmp_path):
    scan(blobs[:2], tmp_path / "scan", epochs=2)
    trained = []
    verdicts = scan(blobs[:2], tmp_path / "scan", epochs=2, cutoff="paper", on_epoch=trained.append).verdicts
    assert trained == []
    assert verdicts.summary()["cutoff"]["name"] == "paper"


def test_a_training_of_ones_own(blobs, tmp_path):
    def train(job):
        model = torch.nn.Linear(8, job.num_outputs)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = torch.utils.data.DataLoader(job.dataset, batch_size=32, shuffle=True)
        for _ in range(5):
            for x, labels, indices in loader:
                logits = model(x)
                job.tracker.update(logits, labels, indices)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(logits, labels).backward()
                optimizer.step()
            job.tracker.end_epoch()

    x, labels, is_flipped = blobs
    verdicts = scan((x, labels), tmp_path / "scan", train=train).verdicts
    assert metrics.identification(verdicts, is_flipped)["average_precision"] > 0.9


def command(path, out):
    return [sys.executable, "-m", "undermargin", "scan", str(path), "--out", str(out), "--epochs", "12", "--json"]


@pytest.fixture
def array_file(blobs, tmp_path):
    x, labels, _ = blobs
    np.savez(tmp_path / "blobs.npz", x=np.tile(x, (5, 1)), y=np.tile(labels, 5))
    return tmp_path / "blobs.npz"


def test_killed_at_random_moments_and_started_again_it_ends_with_the_same_verdicts(array_file, tmp_path):
    environment = dict(os.environ)
    whole = subprocess.run(command(array_file, tmp_path / "whole"), capture_output=True, text=True, env=environment)
    assert whole.returncode == 0, whole.stderr
    lot = random.Random(0)
    kills = 0
    for writes in [1, *(lot.randrange(1, 20) for _ in range(9))]:  # a number of them is a moment on any machine
        process = subprocess.Popen(
            command(array_file, tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        seen = written(tmp_path / "killed")
        while process.poll() is None and writes:
            now = written(tmp_path / "killed")
            seen, writes = now, writes - (now != seen)
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        if process.returncode == 0:
            break
    final = subprocess.run(command(array_file, tmp_path / "killed"), capture_output=True, text=True, env=environment)
    assert final.returncode == 0, final.stderr
    assert kills >= 1
    first, second = (Verdicts.load(tmp_path / name / "verdicts.parquet") for name in ("whole", "killed"))
    np.testing.assert_array_equal(first.scores, second.scores)
    np.testing.assert_array_equal(first.codes, second.codes)
    ours, theirs = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("whole", "killed"))
    assert ours["classes"] == theirs["classes"]


def test_the_command_line_says_what_it_found_and_what_to_do_next(array_file, tmp_path):
    words = [
        sys.executable,
        "-m",
        "undermargin",
        "scan",
        str(array_file),
        "--out",
        str(tmp_path / "s"),
        "--epochs",
        "2",
    ]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "4,000 samples (embeddings), 4 classes" in result.stderr
    for part in ("labels look wrong", "Strongest confusions", "Most suspicious", "undermargin identify"):
        assert part in result.stdout


def test_damaged_images_are_listed_beside_the_verdicts(tmp_path):
    from PIL import Image

    for name, colour in (("cat", "red"), ("dog", "blue")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (32, 32), colour).save(tmp_path / "photos" / name / f"{number}.png")
    (tmp_path / "photos" / "cat" / "3.png").write_bytes(b"oops")
    scan(tmp_path / "photos", tmp_path / "scan", epochs=1)
    assert (tmp_path / "scan" / "skipped.csv").read_text().splitlines() == ["id,reason", "cat/3.png,not an image"]
    assert json.loads((tmp_path / "scan" / "summary.json").read_text())["num_skipped"] == 1


@pytest.mark.parametrize(("blocks", "published"), [(3, 0.27), (5, 0.46), (18, 1.7)])
def test_residual_networks_have_the_published_number_of_parameters(blocks, published):
    # He et al. 2016, table 6: ResNet-20, -32 and -110
    count = sum(parameter.numel() for parameter in SmallResNet(10, blocks=blocks).parameters())
    assert count / 1e6 == pytest.approx(published, rel=0.03)


def test_interrupted_it_says_how_to_go_on(array_file, tmp_path):
    words = [*command(array_file, tmp_path / "scan")[:-3], "--epochs", "2000", "--quiet"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "scan" / "fold0" / "log.jsonl").is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Rerun the same command to resume" in stderr


def test_a_cutoff_that_does_not_exist_is_refused_before_the_training(blobs, tmp_path):
    trained = []
    with pytest.raises(IdentifyError, match="there is no cutoff 'nope'"):
        scan(blobs[:2], tmp_path / "scan", cutoff="nope", on_epoch=trained.append)
    assert trained == []


def test_the_seconds_of_a_scan_are_those_of_all_its_starts(blobs, tmp_path):
    def die(progress):
        time.sleep(1.1)
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(blobs[:2], tmp_path / "scan", epochs=2, on_epoch=die)
    scan(blobs[:2], tmp_path / "scan", epochs=2)
    assert Folder.open(tmp_path / "scan").read_json("summary.json")["seconds"] > 1.1
    assert Folder.open(tmp_path / "scan").damaged() == []


def test_reading_images_is_shown_unless_somebody_wants_it_quiet(tmp_path):
    from PIL import Image

    for name, colour in (("cat", "red"), ("dog", "blue")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (32, 32), colour).save(tmp_path / "photos" / name / f"{number}.png")
    words = ["scan", str(tmp_path / "photos"), "--epochs", "1"]
    loud = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "loud")])
    assert "reading images: 16 of 16" in loud.stderr
    for option in ("--quiet", "--json"):
        assert CliRunner().invoke(app, [*words, "--out", str(tmp_path / option), option]).stderr == ""


@pytest.mark.parametrize(
    ("procedure", "described"),
    [
        (Procedure.default, "flagged when the label is more likely wrong"),
        (Procedure.paper, "99th percentile"),
        (Procedure.reference, "the authors' code: strictly below the 99th"),
        (replace(Procedure.paper, percentile=50.0), "50th percentile"),
    ],
)
def test_a_scan_is_judged_as_its_procedure_says_unless_it_is_told(procedure, described, blobs, tmp_path):
    own = scan(blobs[:2], tmp_path / "own", procedure=procedure, epochs=2).verdicts
    told = scan(blobs[:2], tmp_path / "told", procedure=procedure, epochs=2, cutoff="gaussian").verdicts
    assert own.about["cutoff"]["description"].startswith(described)
    assert told.about["cutoff"]["name"] == "gaussian"
