"""`Scan`: one noun for everything after the training."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.scan_folders import finish, photos, texts
from undermargin import Run, Scan, Verdicts, scan
from undermargin.cli import app
from undermargin.errors import FolderError, IdentifyError, InputError
from undermargin.scans.decisions import Change, Decision

WRONG = (3, 21, 40)


@pytest.fixture
def images(tmp_path):
    finish(tmp_path / "scan", photos(tmp_path / "photos"), wrong=WRONG)
    return Scan.open(tmp_path / "scan")


def runs_of(size=60, wrong=WRONG, **fields):
    """Two runs by hand: these samples score lowest."""
    rng = np.random.default_rng(1)
    is_wrong = np.isin(np.arange(size), wrong)
    for number in (0, 1):
        is_threshold = (np.arange(size) % 8 == 2 * number + 1) & ~is_wrong
        scores = np.where(is_wrong, -6.0, np.where(is_threshold, -3.0, 3.0)) + rng.uniform(-1, 1, size)
        yield Run(scores, is_threshold, fold=number, **fields)


def test_every_step_after_the_training_is_a_call(images, tmp_path):
    assert len(images.verdicts) == 60
    assert images.summary["num_flagged"] == 3
    assert [run.fold for run in images.runs] == [0, 1]
    assert images.decisions == {}
    assert images.identify("gaussian").about["cutoff"]["name"] == "gaussian"
    assert images.summary["cutoff"]["name"] == "gaussian"
    assert images.report() == images.path / "report.html"
    assert images.export("jsonl", tmp_path / "v.jsonl").read_text().count("\n") == 60
    assert images.import_decisions(decisions_csv(tmp_path, "cat/03.png,drop")) == {"num_imported": 1, "num_replaced": 0}
    assert images.export_decisions(tmp_path / "out.csv") == {"num_exported": 1}
    assert images.decisions[3].action == "drop"
    images.identify("paper")
    found = images.clean(tmp_path / "clean")
    assert (found["num_before"], found["num_after"]) == (60, 57)
    assert len(list((tmp_path / "clean").rglob("*.png"))) == 57


def decisions_csv(tmp_path, *rows):
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["id,action", *rows]) + "\n")
    return path


def test_cleaning_without_a_path_only_says_what_would_change(images, tmp_path):
    before = set(tmp_path.iterdir())
    assert images.clean()["num_dropped"] == 3
    assert images.clean(flagged="keep")["num_dropped"] == 0
    assert set(tmp_path.iterdir()) == before


def test_a_scan_shows_itself(images):
    assert repr(images) == f"Scan({str(images.path)!r}: 3 of 60 labels look wrong (5.0%), 0 unjudged)"
    page = images._repr_html_()
    assert "3 of 60 labels look wrong" in page
    assert "cat/03.png" in page


def test_a_notebook_is_shown_text_not_markup(tmp_path):
    finish(tmp_path / "scan", texts(tmp_path / "d.csv"), wrong=range(12))
    page = Scan.open(tmp_path / "scan")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_verdicts_that_were_just_computed_are_not_read_from_disk(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(120, 2)) + 4 * np.eye(2)[np.arange(120) % 2]
    monkeypatch.setattr(Verdicts, "load", lambda path: pytest.fail("read from disk"))
    found = scan((x, np.arange(120) % 2), tmp_path / "scan", epochs=1)
    assert found.verdicts is found.verdicts
    assert found.identify("paper") is found.verdicts


def test_verdicts_that_another_process_wrote_are_noticed(images):
    assert images.verdicts.about["cutoff"]["name"] == "paper"
    Scan.open(images.path).identify("gaussian")
    assert images.verdicts.about["cutoff"]["name"] == "gaussian"


def test_without_a_cutoff_the_scan_keeps_its_own(tmp_path):
    x = np.random.default_rng(0).normal(size=(400, 3)) + 4 * np.eye(3)[np.arange(400) % 3]
    found = scan((x, np.arange(400) % 3), tmp_path / "scan", epochs=1)
    before = found.verdicts.codes
    found.identify("gaussian")
    assert CliRunner().invoke(app, ["identify", str(found.path), "--json"]).exit_code == 0
    assert found.summary["cutoff"]["name"] == "probability"
    np.testing.assert_array_equal(found.verdicts.codes, before)
    assert found.identify(percentile=50).about["cutoff"]["description"].startswith("50th percentile")
    told = CliRunner().invoke(app, ["identify", str(found.path), "--cutoff", "paper", "--json"])
    assert json.loads(told.output)["cutoff"]["name"] == "paper"
    with pytest.raises(IdentifyError, match="has no percentile to change"):
        found.identify("gaussian", percentile=50)


def test_a_scan_told_another_cutoff_keeps_that_one(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 2)) + 4 * np.eye(2)[np.arange(200) % 2]
    data = (x, np.arange(200) % 2)
    scan(data, tmp_path / "scan", epochs=1)
    again = scan(data, tmp_path / "scan", epochs=1, cutoff="gaussian")
    again.identify("paper")
    assert again.identify().about["cutoff"]["name"] == "gaussian"


def test_runs_of_ones_own_become_a_scan_that_can_be_cleaned(tmp_path):
    source = photos(tmp_path / "photos")
    runs = list(runs_of())
    made = Scan.of(runs, source, out=tmp_path / "scan")
    assert made.verdicts.flagged.tolist() == identify_by_hand(runs)
    assert made.verdicts.ids[3] == "cat/03.png"
    assert made.summary["cutoff"]["name"] == "paper"
    assert Scan.open(tmp_path / "scan").identify().flagged.tolist() == made.verdicts.flagged.tolist()
    assert made.report().is_file()
    assert made.clean(tmp_path / "clean")["num_dropped"] == 3
    with pytest.raises(InputError, match="name a model"):
        made.retrain(holdout=0.2)


def identify_by_hand(runs):
    """Flagged in every run that judged a sample: at or below the largest of the few threshold scores."""
    judged = [(run.scores <= run.scores[run.is_threshold].max()) | run.is_threshold for run in runs]
    flagged = np.flatnonzero(judged[0] & judged[1])
    excess = [
        np.where(run.is_threshold, np.nan, run.scores - run.scores[run.is_threshold].max())[flagged] for run in runs
    ]
    return flagged[np.argsort(np.nanmean(excess, axis=0))].tolist()


def test_runs_without_data_are_judged_and_reported_and_what_needs_data_says_so(tmp_path):
    labels = np.arange(60) // 20
    made = Scan.of(runs_of(labels=labels), out=tmp_path / "scan")
    assert len(made.verdicts.flagged) == 3
    assert "scanned from memory" in made.report().read_text()
    made.export("csv", tmp_path / "v.csv")
    made.clean(indices=tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_text().count("\n") == 58
    with pytest.raises(InputError, match="not at any path"):
        made.clean(tmp_path / "clean")
    with pytest.raises(InputError, match="made without its data"):
        made.clean(tmp_path / "clean", data=tmp_path)
    with pytest.raises(FolderError, match="no file to train on"):
        made.retrain(holdout=0.2, model="network")
    with pytest.raises(InputError, match="nothing to show"):
        made.review()


def test_runs_that_do_not_belong_to_the_data_are_refused(tmp_path):
    frame = pd.DataFrame({"length": np.arange(60.0), "label": ["abc"[number // 20] for number in range(60)]})
    labels = np.arange(60) // 20
    with pytest.raises(InputError, match="a run has 60 samples, the data set 59"):
        Scan.of(runs_of(), frame[:59], out=tmp_path / "scan")
    with pytest.raises(InputError, match="20 of 60 labels differ"):
        Scan.of(runs_of(labels=labels % 2), frame, out=tmp_path / "scan")
    names = ["c", "b", "a"]
    made = Scan.of(runs_of(labels=2 - labels, class_names=names), frame, out=tmp_path / "scan")
    assert made.verdicts.name(int(made.verdicts.labels[0])) == "a"
    with pytest.raises(IdentifyError, match="there are no runs"):
        Scan.of([], frame, out=tmp_path / "none")


def test_the_same_runs_again_are_the_same_scan_and_others_are_refused(tmp_path):
    labels = np.arange(60) // 20
    runs = list(runs_of(labels=labels))
    Scan.of(runs, out=tmp_path / "scan")
    again = Scan.of(runs, out=tmp_path / "scan", cutoff="gaussian")
    assert again.identify().about["cutoff"]["name"] == "gaussian"
    others = [replace(run, scores=run.scores + 1) for run in runs]
    with pytest.raises(FolderError, match="scan of other data"):
        Scan.of(others, out=tmp_path / "scan")


def test_opening_identifying_reporting_and_cleaning_need_no_torch(images, tmp_path):
    code = f"""
import sys
sys.modules["torch"] = None
from undermargin import Run, Scan
found = Scan.open({str(images.path)!r})
found.identify("paper"); found.report(); found.clean({str(tmp_path / "clean")!r}); repr(found); found._repr_html_()
found.export("csv", {str(tmp_path / "v.csv")!r})
Scan.of(found.runs, {str(tmp_path / "photos")!r}, out={str(tmp_path / "own")!r})
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


def test_decisions_are_those_of_the_review_by_index(images):
    log = images._folder.decisions()
    log.decide([Change(3, Decision("relabel", "dog"))])
    log.close()
    assert {index: one.label for index, one in images.decisions.items()} == {3: "dog"}
