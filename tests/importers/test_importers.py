"""Every importer against margins by a plain loop, and every damage in one line."""

import csv
import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from aum import AUMCalculator

from tests.adapters.plain import mean_margins
from undermargin import Run, folds, identify, importers
from undermargin.errors import InputError, UndermarginWarning

EPOCHS, SAMPLES, CLASSES = 4, 30, 3
LABELS = np.arange(SAMPLES) % CLASSES


@pytest.fixture
def logits(rng):
    return rng.normal(size=(EPOCHS, SAMPLES, CLASSES)).astype(np.float32)


def softmax(logits):
    powers = np.exp(logits)
    return powers / powers.sum(-1, keepdims=True)


def rows(outputs, name, *, ids=None, order=None, with_labels=True):
    """One mapping per epoch and sample; in each epoch in the given order."""
    for epoch in range(EPOCHS):
        for index in range(SAMPLES) if order is None else order[epoch]:
            row = {"epoch": epoch, name: outputs[epoch, index].tolist()}
            row |= {"index": int(index)} if ids is None else {"id": ids[index]}
            yield row | ({"label": int(LABELS[index])} if with_labels else {})


def write_npy(path, outputs, name):
    np.save(path, outputs)


def write_npz(path, outputs, name):
    np.savez_compressed(path, **{name: outputs}, labels=LABELS)


def write_parquet(path, outputs, name):
    pq.write_table(pa.Table.from_pylist(list(rows(outputs, name))), path)


def write_jsonl(path, outputs, name):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(outputs, name)))


FILES = {".npy": write_npy, ".npz": write_npz, ".parquet": write_parquet, ".jsonl": write_jsonl}
every_file = pytest.mark.parametrize("suffix", FILES)


@every_file
def test_logits_of_every_format_score_as_a_plain_loop(suffix, logits, tmp_path):
    path = tmp_path / f"outputs{suffix}"
    FILES[suffix](path, logits, "logits")
    (run,) = importers.read(path, labels=LABELS)
    np.testing.assert_allclose(run.scores, mean_margins(logits, LABELS), rtol=1e-5, atol=1e-6)
    assert np.array_equal(run.labels, LABELS)
    assert run.suggested_labels is not None


@every_file
@pytest.mark.parametrize("name", ["logits", "probabilities"])
def test_probabilities_are_recognized_by_their_name_or_their_sums(suffix, name, logits, tmp_path):
    path = tmp_path / f"outputs{suffix}"
    FILES[suffix](path, softmax(logits), name)
    run = importers.from_logits(path, labels=LABELS)
    np.testing.assert_allclose(run.scores, mean_margins(logits, LABELS), rtol=1e-4, atol=1e-5)
    with pytest.warns(UndermarginWarning, match="are probabilities"):
        told = importers.from_logits(path, labels=LABELS, is_probabilities=False)
    np.testing.assert_allclose(told.scores, mean_margins(softmax(logits), LABELS), rtol=1e-4, atol=1e-5)


@every_file
def test_a_training_with_threshold_samples_is_judged_by_the_papers_cutoff(suffix, rng, tmp_path):
    runs = []
    for fold in folds(LABELS, CLASSES):
        outputs = rng.normal(size=(EPOCHS, SAMPLES, CLASSES + 1)).astype(np.float32)
        path = tmp_path / f"fold{fold.number}{suffix}"
        FILES[suffix](path, outputs, "logits")
        runs += importers.read(path, fold=fold, class_names=["a", "b", "c"])
        np.testing.assert_allclose(runs[-1].scores, mean_margins(outputs, fold.labels), rtol=1e-5, atol=1e-6)
    assert [run.fold for run in runs] == [0, 1]
    assert len(identify(runs)) == SAMPLES


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_rows_may_come_in_any_order_within_an_epoch_and_with_ids(suffix, logits, tmp_path, rng):
    ids = [f"img{index}.png" for index in range(SAMPLES)]
    order = [rng.permutation(SAMPLES) for _ in range(EPOCHS)]
    table = list(rows(logits, "logits", ids=ids, order=order))
    path = tmp_path / f"outputs{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(table), path, row_group_size=7)
    else:
        path.write_text("\n".join(map(json.dumps, table)))
    run = importers.from_logits(path)
    expected = mean_margins(logits, LABELS)
    assert run.ids == [ids[index] for index in order[0]]
    np.testing.assert_allclose(run.scores, expected[order[0]], rtol=1e-5, atol=1e-6)
    mapped = importers.from_logits(path, labels=dict(zip(ids, LABELS.tolist(), strict=True)))
    assert np.array_equal(mapped.scores, run.scores)


def test_pieces_smaller_than_an_epoch_change_nothing(logits, tmp_path, monkeypatch):
    monkeypatch.setattr("undermargin.importers.arrays.PIECE", 7 * CLASSES)
    monkeypatch.setattr("undermargin.importers.rows.ROWS", 7)
    for suffix, write in FILES.items():
        path = tmp_path / f"outputs{suffix}"
        write(path, logits, "logits")
        scores = importers.from_logits(path, labels=LABELS).scores
        np.testing.assert_allclose(scores, mean_margins(logits, LABELS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_memory_depends_on_the_samples_and_not_on_the_epochs(suffix, tmp_path, rng, monkeypatch):
    monkeypatch.setattr("undermargin.importers.arrays.PIECE", 1 << 18)
    peaks = []
    for epochs in (2, 20):
        outputs = rng.normal(size=(epochs, 20_000, 20)).astype(np.float16)
        path = tmp_path / f"outputs{epochs}{suffix}"
        np.save(path, outputs) if suffix == ".npy" else np.savez(path, logits=outputs)
        del outputs
        tracemalloc.start()
        importers.from_logits(path, labels=np.zeros(20_000, int))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 12e6  # the file has 16 MB


@pytest.mark.parametrize("suffix", [".npy", ".txt"])
def test_labels_may_be_a_file(suffix, logits, tmp_path):
    np.save(tmp_path / "outputs.npy", logits)
    path = tmp_path / f"labels{suffix}"
    np.save(path, LABELS) if suffix == ".npy" else path.write_text("\n".join(map(str, LABELS)))
    (run,) = importers.read(tmp_path / "outputs.npy", labels=str(path))
    assert np.array_equal(run.labels, LABELS)


def test_the_authors_file_gives_their_values_in_the_order_of_the_data_set(logits, tmp_path):
    calculator = AUMCalculator(str(tmp_path), compressed=True)
    for epoch in range(EPOCHS):
        calculator.update(torch.from_numpy(logits[epoch]), torch.from_numpy(LABELS), list(range(SAMPLES)))
    calculator.finalize()
    (run,) = importers.read(tmp_path / "aum_values.csv", labels=LABELS)
    np.testing.assert_allclose(run.scores, mean_margins(logits, LABELS), rtol=1e-5, atol=1e-6)
    assert run.ids == [str(index) for index in range(SAMPLES)]
    assert len(identify([run], "gaussian")) == SAMPLES


def test_names_and_unmeasured_samples_of_the_authors_file_are_kept(tmp_path):
    path = tmp_path / "aum_values.csv"
    path.write_text("sample_id,aum\ncat.png,3.5\ndog.png,-1\nfox.png,\n")
    run = importers.from_aum_csv(path, labels={"dog.png": 1, "cat.png": 0, "fox.png": 1}, class_names=["a", "b"])
    assert run.ids == ["cat.png", "dog.png", "fox.png"]
    np.testing.assert_array_equal(run.scores, [3.5, -1, np.nan])
    assert run.labels.tolist() == [0, 1, 1]


def test_the_authors_file_of_a_fold_has_its_threshold_samples(tmp_path, rng):
    fold = folds(LABELS, CLASSES)[1]
    path = tmp_path / "aum_values.csv"
    path.write_text("sample_id,aum\n" + "".join(f"{index},{rng.normal()}\n" for index in range(SAMPLES)))
    run = importers.from_aum_csv(path, fold=fold)
    assert np.array_equal(run.is_threshold, fold.is_threshold)
    assert run.fold == 1


def write_cartography(folder, logits, guids):
    folder.mkdir(parents=True)
    for epoch in range(EPOCHS):
        lines = [
            {"guid": guid, f"logits_epoch_{epoch}": logits[epoch, index].tolist(), "gold": int(LABELS[index])}
            for index, guid in enumerate(guids)
        ]
        shuffled = lines if epoch == 0 else lines[::-1]
        (folder / f"dynamics_epoch_{epoch}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in shuffled))


@pytest.mark.parametrize("around", [True, False], ids=["model folder", "training_dynamics"])
def test_cartographys_folder_scores_as_a_plain_loop(around, logits, tmp_path):
    guids = [f"q{index}" for index in range(SAMPLES)]
    write_cartography(tmp_path / "training_dynamics", logits, guids)
    (run,) = importers.read(tmp_path if around else tmp_path / "training_dynamics")
    np.testing.assert_allclose(run.scores, mean_margins(logits, LABELS), rtol=1e-5, atol=1e-6)
    assert run.ids == guids
    assert np.array_equal(run.labels, LABELS)


def test_imported_runs_are_saved_and_loaded_like_any_other(logits, tmp_path):
    write_cartography(tmp_path / "training_dynamics", logits, [f"q{index}" for index in range(SAMPLES)])
    (run,) = importers.read(tmp_path)
    run.save(tmp_path / "scores.parquet")
    assert np.array_equal(Run.load(tmp_path / "scores.parquet").scores, run.scores)


@every_file
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_that_was_cut_off_is_an_error_of_one_line(suffix, share, logits, tmp_path):
    path = tmp_path / f"outputs{suffix}"
    FILES[suffix](path, logits, "logits")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError) as error:
        importers.read(path, labels=LABELS)
    assert "\n" not in str(error.value)
    assert path.name in str(error.value)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".jsonl"])
def test_a_file_with_wrong_bytes_inside_is_an_error_of_one_line(suffix, logits, tmp_path):
    path = tmp_path / f"outputs{suffix}"
    FILES[suffix](path, logits, "logits")
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(bytes(content))
    with pytest.raises(InputError) as error:
        importers.read(path, labels=LABELS)
    assert "\n" not in str(error.value)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


FIRST = {"epoch": 0, "index": 0, "logits": [1.0, 2.0], "label": 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]\n", "line 1: a list, expected an object"),
        (lines(FIRST) + "{'epoch'", "line 2 is not JSON"),
        (lines(FIRST, {"epoch": 0, "index": 1, "label": 0}), "line 2 has no 'logits', only epoch, index, label"),
        (lines({"index": 0, "logits": [1, 2]}), "has no column 'epoch', only index, logits"),
        (lines({"epoch": 0, "index": 0, "scores": [1, 2]}), "expected one called logits or probabilities"),
        (lines({"epoch": 0, "guid": 0, "logits": [1, 2]}), "expected one called index or id"),
        (
            lines(FIRST, FIRST | {"epoch": 2}, FIRST | {"epoch": 1}),
            "epoch 1 comes after epoch 2; sort the file",
        ),
        (lines(FIRST, FIRST | {"index": 1, "logits": [1, 2, 3]}), "not lists of equally many numbers"),
        (lines(FIRST | {"logits": [1.0]}), "two or more classes"),
        (lines(FIRST | {"label": 2}), "labels run from 2 to 2, but there are logits of 2 classes"),
        (lines(FIRST, FIRST | {"index": 2}), "index 1 of 0..2 never occurs; pass labels= for all"),
        (lines(FIRST, FIRST | {"epoch": 1, "label": 1}), "sample 0 has label 0 and label 1"),
        (lines(FIRST | {"index": "a.png"}), "index holds 'a.png', expected whole numbers 0..n-1; call names 'id'"),
        (lines(FIRST | {"label": "cat"}), "encode names as 0..n-1, in the order of the logits"),
        (lines({"epoch": 0, "index": 0, "logits": [1, 2]}), "holds no labels; pass labels="),
        ("", "is empty"),
    ],
)
def test_json_lines_that_cannot_be_used_say_why(text, message, tmp_path):
    path = tmp_path / "outputs.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        importers.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,score\n1,2\n", "has columns id, score; expected sample_id, aum"),
        ("sample_id,aum\n1,2\n1,3\n", "line 3: sample_id 1 occurs twice"),
        ("sample_id,aum\n0,2\n1,-\n", "line 3: aum is '-', expected a number"),
        ("sample_id,aum\n0,2\n1\n", "line 3: aum is None, expected a number; is the file complete?"),
        ("sample_id,aum\n", "holds no samples"),
        ("sample_id,aum\n0,inf\n", "1 scores are infinite"),
        ("", "has columns none"),
    ],
)
def test_tables_of_aums_that_cannot_be_used_say_why(text, message, tmp_path):
    path = tmp_path / "aum_values.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        importers.read(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.zeros((4, 30)),
            r"shape \(4, 30\) and type float64, expected numbers of shape \(epochs, samples,",
        ),
        (np.zeros((4, 30, 1)), "with two or more classes"),
        (np.zeros((0, 30, 3)), "expected numbers of shape"),
        (np.zeros((4, 29, 3)), "holds 29 samples, but there are 30 labels"),
        (np.full((4, 30, 3), "a"), "type <U1, expected numbers"),
    ],
)
def test_arrays_that_cannot_be_used_say_why(array, message, tmp_path):
    np.save(tmp_path / "outputs.npy", array)
    with pytest.raises(InputError, match=message):
        importers.read(tmp_path / "outputs.npy", labels=LABELS)


def test_archives_that_cannot_be_used_say_why(logits, tmp_path):
    path = tmp_path / "outputs.npz"
    np.savez(path, scores=logits)
    with pytest.raises(InputError, match="holds scores; expected an array called logits or probabilities"):
        importers.read(path)
    np.savez(path, logits=np.asfortranarray(logits), labels=LABELS)
    with pytest.raises(InputError, match="logits is stored by columns"):
        importers.read(path)


def test_folders_of_dynamics_that_cannot_be_used_say_why(logits, tmp_path):
    with pytest.raises(InputError, match=r"holds no dynamics_epoch_0.jsonl"):
        importers.read(tmp_path)
    folder = tmp_path / "training_dynamics"
    write_cartography(folder, logits, [f"q{index}" for index in range(SAMPLES)])
    (folder / "dynamics_epoch_3.jsonl").write_text('{"guid": "new", "logits_epoch_3": [1, 2, 3], "gold": 0}\n')
    with pytest.raises(InputError, match="guid 'new' does not occur in epoch 0"):
        importers.read(tmp_path)
    (folder / "dynamics_epoch_1.jsonl").unlink()
    with pytest.raises(InputError, match="holds 3 epochs up to 3, but epoch 1 is missing"):
        importers.read(tmp_path)


def test_paths_that_are_nothing_say_so(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        importers.read(tmp_path / "nothing.npy")
    (tmp_path / "outputs.h5").touch()
    with pytest.raises(InputError, match=r"ends with .h5; expected a folder or one of .npy, .npz, .parquet, .jsonl"):
        importers.read(tmp_path / "outputs.h5")
    with pytest.raises(InputError, match="there is no format 'h5'; choose from logits, aum, cartography"):
        importers.read(tmp_path / "outputs.h5", format="h5")


def test_labels_that_do_not_fit_the_samples_say_so(logits, tmp_path):
    np.save(tmp_path / "outputs.npy", logits)
    with pytest.raises(InputError, match="pass labels as a list in this order"):
        importers.read(tmp_path / "outputs.npy", labels={"a": 1})
    with pytest.raises(InputError, match="labels could not be read from"):
        importers.read(tmp_path / "outputs.npy", labels=tmp_path / "labels.npy")
    with pytest.raises(InputError, match="30 samples, but the fold has 60"):
        importers.read(tmp_path / "outputs.npy", fold=folds(np.tile(LABELS, 2), 3)[0])
    path = tmp_path / "aum_values.csv"
    with path.open("w") as file:
        csv.writer(file).writerows([["sample_id", "aum"], ["a.png", 1.0], ["b.png", 2.0]])
    with pytest.raises(InputError, match="names its samples; pass labels as a mapping"):
        importers.read(path, labels=[0, 1])
    with pytest.raises(InputError, match=r"labels lack 1 of the 2 ids in .*, such as 'b.png'"):
        importers.read(path, labels={"a.png": 0})
