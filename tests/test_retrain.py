"""Does cleaning help? The same number of iterations on all samples, on the cleaned, and on as many by lot."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

from undermargin import noise, scan
from undermargin.cli import app
from undermargin.errors import FolderError, InputError
from undermargin.scans.cleaning import Cleaning
from undermargin.scans.decisions import Change, Decision
from undermargin.scans.evaluate import difference, evaluate
from undermargin.scans.folder import Folder
from undermargin.sources.joined import join
from undermargin.sources.source import load
from undermargin.training.engine import Budget
from undermargin.training.retrain import retrain


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    """A scan of 600 points in three clouds, a third of the labels flipped, and 300 points to test on."""
    folder = tmp_path_factory.mktemp("clouds")
    x, true_labels = make_blobs(900, n_features=6, centers=3, cluster_std=3.0, random_state=1)
    labels = noise.uniform(true_labels, 0.35, 3, seed=0)
    np.savez(folder / "train.npz", x=x[:600], y=labels[:600])
    np.savez(folder / "test.npz", x=x[600:], y=true_labels[600:])
    scan(folder / "train.npz", folder / "scan")
    return folder, labels[:600], true_labels[:600]


def test_training_without_mislabeled_samples_beats_all_samples_and_removal_by_lot(clouds):
    result = evaluate(clouds[0] / "scan", test=clouds[0] / "test.npz", seeds=3, epochs=30)
    assert result["means"]["cleaned"] < result["means"]["standard"]
    assert result["means"]["cleaned"] < result["means"]["random"]
    assert not result["is_test_noisy"]
    assert json.loads((clouds[0] / "scan" / "retrain.json").read_text()) == result


def test_held_out_labels_are_said_to_be_noisy(clouds):
    result = evaluate(clouds[0] / "scan", holdout=0.2, seeds=1, epochs=2)
    assert result["is_test_noisy"]
    assert result["differences"]["cleaned - standard"]["low"] is None


def test_the_command_prints_errors_and_differences(clouds):
    words = ["retrain", str(clouds[0] / "scan"), "--test", str(clouds[0] / "test.npz"), "--seeds", "2", "--epochs", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for part in ("all samples", "the cleaned samples", "the same number, at random", "95 % interval"):
        assert part in result.output


def test_paired_differences_have_students_interval():
    # by hand: differences -1, -2, -3; mean -2, standard error 1 / sqrt(3), t(.975, 2) = 4.302653
    found = difference([1, 2, 3], [2, 4, 6])
    assert found["mean"] == -2
    assert found["high"] - found["low"] == pytest.approx(2 * 4.302653 / np.sqrt(3), rel=1e-6)


def test_the_batch_size_shrinks_so_that_the_iterations_are_kept():
    """The paper: removing a quarter turns a batch of 256 into one of 192."""

    class Recorded:
        def start(self, labels, num_outputs, *, seed, budget, rows=None):
            self.budget, self.rows = budget, rows
            return self

        def run_epoch(self, epoch):
            pass

    plan = Recorded()
    labels = np.zeros(1000, int)
    retrain(plan, labels, np.arange(750), num_samples=1000, num_classes=2, budget=Budget(1, 256), seed=0)
    assert plan.budget.batch_size == 192
    with pytest.raises(InputError, match="none of the 1000 samples is kept"):
        retrain(plan, labels, np.arange(0), num_samples=1000, num_classes=2, budget=Budget(1, 256), seed=0)


def test_one_of_test_and_holdout_is_needed(clouds):
    with pytest.raises(InputError, match="one of the two"):
        evaluate(clouds[0] / "scan")
    with pytest.raises(InputError, match="between 0 and 1"):
        evaluate(clouds[0] / "scan", holdout=2)


def test_data_that_have_changed_are_refused(clouds, tmp_path):
    x, y = (np.load(clouds[0] / "train.npz")[name] for name in ("x", "y"))
    np.savez(tmp_path / "d.npz", x=x, y=y)
    scan(tmp_path / "d.npz", tmp_path / "scan", epochs=1)
    np.savez(tmp_path / "d.npz", x=x + 1, y=y)
    with pytest.raises(FolderError, match="has changed since"):
        evaluate(tmp_path / "scan", holdout=0.5)


def frame(cities, ages, labels):
    return load(pd.DataFrame({"city": cities, "age": ages, "label": labels}))


def test_a_test_table_is_read_with_the_training_tables_columns_and_classes():
    train = frame(["here", "there"] * 4, [1.0, 2.0] * 4, ["no", "yes"] * 4)
    columns = {"age": [5.0, 6.0] * 2, "label": ["yes", "no"] * 2, "city": ["there", "elsewhere"] * 2}
    test = load(pd.DataFrame(columns))
    joined = join(train, test)
    assert joined.labels[8:].tolist() == [1, 0, 1, 0]
    assert joined.inputs.numbers[8:, 0].tolist() == [5, 6, 5, 6]
    assert joined.inputs.codes[8:, 0].tolist() == [2, 0, 2, 0]  # a city nobody knows counts as missing


def test_a_test_set_that_does_not_fit_is_refused():
    train = frame(["here", "there"] * 4, [1.0, 2.0] * 4, ["no", "yes"] * 4)
    with pytest.raises(InputError, match="classes that the training set lacks: maybe"):
        join(train, frame(["here", "there"] * 4, [1.0, 2.0] * 4, ["maybe", "yes"] * 4))
    with pytest.raises(InputError, match="lacks the columns city"):
        join(train, load(pd.DataFrame({"age": [1.0, 2.0] * 4, "label": ["no", "yes"] * 4})))
    with pytest.raises(InputError, match="holds embeddings, the training set table"):
        join(train, load((np.zeros((8, 2), np.float32), [0, 1] * 4)))


def test_decisions_are_trusted_when_the_same_data_are_scanned_again(clouds, tmp_path):
    folder, labels, _ = clouds
    scan(folder / "train.npz", tmp_path / "first", epochs=3)
    first = Folder.open(tmp_path / "first")
    flagged = first.verdicts().flagged[:3].tolist()
    other = str((int(labels[flagged[1]]) + 1) % 3)
    decisions = first.decisions()
    answers = [Decision("keep"), Decision("relabel", other), Decision("drop")]
    decisions.decide([Change(index, one) for index, one in zip(flagged, answers, strict=True)])
    decisions.close()
    again = scan(folder / "train.npz", tmp_path / "second", epochs=3, decisions=tmp_path / "first").verdicts
    assert [again[index] for index in flagged] == ["kept", "flagged", "flagged"]
    assert again.labels[flagged[1]] == labels[flagged[1]]  # as the data set has it
    assert again.suggested_labels[flagged[1]] == int(other)
    assert again.judged_by[flagged[2]] == 0  # it was left out of the training
    assert again.suggested_labels[flagged[2]] == -1
    assert not any("never observed" in note for note in again.summary()["notes"])
    cleaned = Cleaning.of(tmp_path / "second", flagged="keep").changes
    assert cleaned.new_labels[flagged[1]] == int(other)
    assert cleaned.is_dropped.nonzero()[0].tolist() == [flagged[2]]
    CliRunner().invoke(app, ["identify", str(tmp_path / "second"), "--cutoff", "gaussian"])
    judged = Folder.open(tmp_path / "second").verdicts()
    assert [judged[index] for index in flagged] == ["kept", "flagged", "flagged"]
    assert not any("never observed" in note for note in judged.summary()["notes"])
    with pytest.raises(FolderError, match="different settings: 3 trusted decisions, now 0"):
        scan(folder / "train.npz", tmp_path / "second", epochs=3)
    with pytest.raises(FolderError, match="decisions about other data"):
        scan(folder / "test.npz", tmp_path / "third", decisions=tmp_path / "first")


def test_retraining_puts_decisions_before_verdicts(clouds, tmp_path):
    folder = clouds[0]
    scan(folder / "train.npz", tmp_path / "scan", epochs=3)
    opened = Folder.open(tmp_path / "scan")
    decisions = opened.decisions()
    decisions.decide([Change(int(index), Decision("keep")) for index in opened.verdicts().flagged])
    decisions.close()
    result = evaluate(tmp_path / "scan", test=folder / "test.npz", seeds=1, epochs=2)
    assert result["errors"]["cleaned"] == result["errors"]["standard"]  # nothing is removed any more


def test_retraining_trains_what_the_scan_trained_unless_another_model_is_named(clouds, tmp_path):
    scan(clouds[0] / "train.npz", tmp_path / "scan", epochs=2, model="linear")
    settings = {"holdout": 0.2, "seeds": 1, "epochs": 1}
    assert evaluate(tmp_path / "scan", **settings)["model"] == "a linear classifier"
    assert evaluate(tmp_path / "scan", model="network", **settings)["model"] == "one hidden layer"


def test_a_network_of_ones_own_is_not_in_the_folder_and_must_be_given_again(clouds, tmp_path):
    def narrow(num_outputs):
        return torch.nn.Linear(6, num_outputs)

    scan(clouds[0] / "train.npz", tmp_path / "scan", epochs=2, model=narrow)
    with pytest.raises(InputError, match="which is not in the folder; name a model with --model"):
        evaluate(tmp_path / "scan", holdout=0.2)
    result = evaluate(tmp_path / "scan", holdout=0.2, seeds=1, epochs=1, model=narrow)
    assert result["model"].startswith("the user's own")


def test_data_that_a_strangers_folder_names_are_not_trained_on(clouds, tmp_path):
    shutil.copytree(clouds[0] / "scan", tmp_path / "from elsewhere")
    with pytest.raises(FolderError, match="was not scanned here, and names .*train.npz"):
        evaluate(tmp_path / "from elsewhere", holdout=0.2)
