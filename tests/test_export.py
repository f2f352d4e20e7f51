"""A scan's answers in the formats of other tools, read back by those tools where they can be installed."""

import importlib.machinery
import json
import sys
import types
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tests.scan_folders import finish, photos, texts
from undermargin.errors import FolderError, InputError
from undermargin.export import FORMATS, export

WRONG = (3, 21, 40)


@dataclass(frozen=True)
class Decided:
    action: str
    label: str | None = None


@pytest.fixture
def images(tmp_path):
    return finish(tmp_path / "images", photos(tmp_path / "photos"), wrong=WRONG)


@pytest.fixture
def written(tmp_path):
    return finish(tmp_path / "written", texts(tmp_path / "d.csv", names=("=good", "bad")), wrong=(1, 31))


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_refuses_to_overwrite_unless_told(images, to, tmp_path):
    out = tmp_path / "new" / "out.csv"
    assert export(images, to, out) == out
    assert out.is_dir() == FORMATS[to].is_folder
    with pytest.raises(FolderError, match="already exists; choose another path, or pass --overwrite"):
        export(images, to, out)
    export(images, to, out, overwrite=True)
    assert not list(out.parent.glob("*.part"))


@pytest.mark.parametrize("to", FORMATS)
def test_a_folder_full_of_other_things_is_never_replaced(images, to, tmp_path):
    (tmp_path / "mine.csv").mkdir()
    (tmp_path / "mine.csv" / "thesis.tex").write_text("years")
    with pytest.raises(FolderError):
        export(images, to, tmp_path / "mine.csv", overwrite=True)
    assert (tmp_path / "mine.csv" / "thesis.tex").read_text() == "years"


def test_the_tables_hold_the_same_rows_most_suspicious_first(images, tmp_path):
    for to in ("csv", "parquet", "jsonl"):
        export(images, to, tmp_path / to)
    parquet = pd.read_parquet(tmp_path / "parquet")
    assert set(parquet["index"][:3]) == set(WRONG)
    assert list(parquet["verdict"][:4]) == ["flagged"] * 3 + ["kept"]
    assert list(pd.read_csv(tmp_path / "csv")["id"]) == list(parquet["id"])
    lines = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    assert [line["score"] for line in lines] == list(parquet["score"])


def test_only_csv_guards_against_formulas(written, tmp_path):
    for to in ("csv", "parquet"):
        export(written, to, tmp_path / to)
    assert set(pd.read_csv(tmp_path / "csv")["label"]) == {"'=good", "bad"}
    assert set(pd.read_parquet(tmp_path / "parquet")["label"]) == {"=good", "bad"}


def test_only_the_flagged_if_so_asked(images, tmp_path):
    export(images, "parquet", tmp_path / "out", only_flagged=True)
    assert set(pd.read_parquet(tmp_path / "out")["index"]) == set(WRONG)


def test_what_people_decided_overrules_the_verdicts(images, tmp_path):
    decisions = {3: Decided("keep"), 21: Decided("relabel", "cat"), 40: Decided("drop"), 0: Decided("drop")}
    export(images, "parquet", tmp_path / "out", decisions=decisions)
    rows = pd.read_parquet(tmp_path / "out").set_index("index")
    told = rows.loc[[3, 21, 40, 0, 5], ["verdict", "suggested_label", "decision"]]
    told = told.astype(object).where(told.notna(), None).to_numpy().tolist()
    assert told[:4] == [
        ["kept", "cat", "keep"],
        ["flagged", "cat", "relabel"],
        ["flagged", "cat", "drop"],  # an eel that looks like the class behind it
        ["flagged", None, "drop"],  # a cat that looks like a cat
    ]
    assert told[4][0] == "kept"
    assert pd.isna(told[4][2])
    with pytest.raises(InputError, match="relabeled as 'fox', which is none of the scan's classes"):
        export(images, "csv", tmp_path / "fox", decisions={1: Decided("relabel", "fox")})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_cleanlabs_frame_says_who_is_suspicious_in_the_data_sets_order(images, suffix, tmp_path):
    export(images, "cleanlab", tmp_path / f"issues{suffix}")
    read = pd.read_csv if suffix == ".csv" else pd.read_parquet
    frame = read(tmp_path / f"issues{suffix}")
    assert list(frame["index"]) == list(range(60))
    assert set(np.flatnonzero(frame["is_label_issue"])) == set(WRONG)
    assert frame["label_quality"].between(0, 1).all()
    assert frame["label_quality"][list(WRONG)].max() <= 0.5 <= frame["label_quality"].drop(list(WRONG)).min()
    assert list(frame.loc[21, ["given_label", "predicted_label"]]) == ["dog", "eel"]


def test_cleanlab_trains_without_the_flagged(images, tmp_path):
    cleanlab = pytest.importorskip("cleanlab")
    from sklearn.linear_model import LogisticRegression

    export(images, "cleanlab", tmp_path / "issues.parquet")
    issues = pd.read_parquet(tmp_path / "issues.parquet")
    names = ["cat", "dog", "eel"]
    for column in ("given_label", "predicted_label"):
        issues[column] = [names.index(name) for name in issues[column]]
    learning = cleanlab.classification.CleanLearning(LogisticRegression())
    learning.fit(np.eye(3)[issues["given_label"]], issues["given_label"].to_numpy(), label_issues=issues)
    assert learning.get_label_issues()["is_label_issue"].sum() == 3


@pytest.mark.parametrize("kind", ["images", "written"])
def test_label_studio_takes_interface_tasks_and_predictions(kind, request, tmp_path):
    label_interface = pytest.importorskip("label_studio_sdk.label_interface")
    export(request.getfixturevalue(kind), "label-studio", tmp_path / "tasks.json", decisions={1: Decided("keep")})
    interface = label_interface.LabelInterface((tmp_path / "tasks.xml").read_text())
    interface.validate()
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert len(tasks) == 60
    for task in tasks:
        assert interface.validate_task({"data": task["data"]})  # with more it calls its own checks wrongly
        assert interface.validate_prediction(task["predictions"][0])
        assert all(interface.validate_annotation(annotation) for annotation in task.get("annotations", []))
    broken = tasks[0]["predictions"][0] | {"result": [{**tasks[0]["predictions"][0]["result"][0], "from_name": "x"}]}
    assert not interface.validate_prediction(broken)  # the check can fail
    assert sum("annotations" in task for task in tasks) == 1


def test_label_studio_finds_images_as_local_files(images, tmp_path):
    export(images, "label-studio", tmp_path / "tasks.json", only_flagged=True)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    by_index = {task["data"]["index"]: task for task in tasks}
    assert by_index[21]["data"]["image"] == "/data/local-files/?d=dog/01.png"
    assert by_index[21]["predictions"][0]["score"] == 0.75
    with pytest.raises(InputError, match="choose another suffix"):
        export(images, "label-studio", tmp_path / "other.xml")


def test_fiftyone_names_every_image_by_a_file_that_exists(images, tmp_path):
    from pathlib import Path

    export(images, "fiftyone", tmp_path / "labels.json")
    written = json.loads((tmp_path / "labels.json").read_text())
    assert written["classes"] == ["cat", "dog", "eel"]
    assert len(written["labels"]) == 60
    assert all(Path(name).is_file() for name in written["labels"])
    entry = written["labels"][str(tmp_path / "photos/dog/01.png")]
    assert (entry["label"], entry["attributes"]["verdict"], entry["attributes"]["suggested_label"]) == (
        "dog",
        "flagged",
        "eel",
    )


def test_where_fiftyone_is_installed_it_gets_a_data_set(images, tmp_path, monkeypatch):
    """With a stand-in: the real one needs a database server, which is not everywhere where tests run."""
    made = {}

    class Dataset:
        def __init__(self, name, *, persistent, overwrite):
            assert persistent
            assert overwrite
            made[name] = self.samples = []

        def add_samples(self, samples):
            self.samples += samples

    stand_in = types.ModuleType("fiftyone")
    stand_in.__spec__ = importlib.machinery.ModuleSpec("fiftyone", None)
    stand_in.Dataset, stand_in.Sample, stand_in.Classification = Dataset, dict, dict
    monkeypatch.setitem(sys.modules, "fiftyone", stand_in)
    export(images, "fiftyone", tmp_path / "photos.json", only_flagged=True)
    written = json.loads((tmp_path / "photos.json").read_text())["labels"]
    assert [sample["filepath"] for sample in made["photos"]] == list(written)
    assert {sample["undermargin_verdict"] for sample in made["photos"]} == {"flagged"}


def test_fiftyone_is_for_images(written, tmp_path):
    with pytest.raises(InputError, match="FiftyOne shows images; these samples are text"):
        export(written, "fiftyone", tmp_path / "labels.json")


def test_a_hugging_face_data_set_has_the_samples_and_the_answers(images, written, tmp_path):
    datasets = pytest.importorskip("datasets")
    export(images, "datasets", tmp_path / "a")
    pictures = datasets.load_from_disk(str(tmp_path / "a"))
    assert pictures[21]["image"].size == (40, 30)
    assert pictures.features["label"].int2str(pictures[21]["label"]) == "dog"
    assert pictures[21]["undermargin_verdict"] == "flagged"
    export(written, "datasets", tmp_path / "b", only_flagged=True)
    rows = datasets.load_from_disk(str(tmp_path / "b"))
    assert rows["undermargin_id"][:] == ["1", "31"]
    assert rows[0]["text"] == "<b>text</b> number 1 & more"
    assert rows.column_names[:4] == ["text", "label", "age", "city"]


def test_a_hugging_face_data_set_of_arrays_keeps_pixels_and_numbers(tmp_path):
    datasets = pytest.importorskip("datasets")
    rng = np.random.default_rng(0)
    for name, x in (("pixels", rng.integers(0, 255, (40, 8, 8), np.uint8)), ("numbers", rng.normal(size=(40, 3)))):
        np.savez(tmp_path / f"{name}.npz", x=x, y=[0, 1] * 20)
        export(finish(tmp_path / f"{name}-scan", tmp_path / f"{name}.npz"), "datasets", tmp_path / name)
        first = datasets.load_from_disk(str(tmp_path / name))[0]
        np.testing.assert_allclose(np.asarray(first["image" if name == "pixels" else "embedding"]), x[0], rtol=1e-6)


def test_data_from_memory_cannot_be_copied(tmp_path):
    folder = finish(tmp_path / "scan", (np.random.default_rng(0).normal(size=(40, 3)), [0, 1] * 20))
    with pytest.raises(InputError, match="its samples cannot be copied"):
        export(folder, "datasets", tmp_path / "out")


def test_a_format_that_does_not_exist_is_an_error_that_lists_those_that_do(images, tmp_path):
    with pytest.raises(InputError, match="choose from csv, parquet, jsonl, label-studio"):
        export(images, "excel", tmp_path / "out")
