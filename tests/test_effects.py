"""What a decision does to a sample means the same everywhere."""

import json

import numpy as np
import pytest

from tests.scan_folders import finish
from undermargin import Scan, Verdicts
from undermargin.errors import InputError
from undermargin.scans.decisions import Change, Decision
from undermargin.scans.effects import effects, overruled
from undermargin.verdicts.record import FLAGGED, KEPT

DECIDED = {0: Decision("keep"), 1: Decision("relabel", "b"), 2: Decision("drop"), 5: Decision("relabel", "a")}


@pytest.fixture
def scan(tmp_path):
    """Samples 0 to 3 are flagged; labels alternate between a and b; 4 of 16 are decided, one was kept before."""
    rows = [f"word{number} and more,{'ab'[number % 2]},s{number}" for number in range(16)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label,id", *rows]))
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=[0, 1, 2, 3])
    log = folder.decisions()
    # to relabel sample 1 as b would be to keep it; the review turns that into keep, so it gets a
    log.decide([Change(index, one) for index, one in DECIDED.items() if index != 1])
    log.decide([Change(1, Decision("relabel", "a"))])
    log.close()
    return Scan.open(folder.path)


def test_a_relabeled_sample_is_flagged_with_the_new_label_in_exports_and_reports(scan, tmp_path):
    scan.export("jsonl", tmp_path / "v.jsonl")
    rows = {row["index"]: row for row in map(json.loads, (tmp_path / "v.jsonl").read_text().splitlines())}
    told = [(rows[index]["verdict"], rows[index]["suggested_label"]) for index in (0, 1, 2, 3, 5)]
    assert told == [("kept", "a"), ("flagged", "a"), ("flagged", "b"), ("flagged", "a"), ("flagged", "a")]
    data = scan.describe()
    assert (data["num_flagged"], data["num_kept"]) == (4, 12)
    assert {one["index"]: one["suggested_label"] for one in data["gallery"]["samples"]} == {
        1: "a",
        2: "b",
        3: "a",
        5: "a",
    }
    assert "4 samples follow decisions made in review" in data["notes"]


def test_a_relabeled_sample_stays_in_cleaned_data_with_its_new_label(scan, tmp_path):
    scan.clean(tmp_path / "clean.csv")
    lines = (tmp_path / "clean.csv").read_text().splitlines()
    # 2 was dropped by a decision, 3 by its verdict
    assert [line.split(",")[1:] for line in lines[1:]] == [
        ["a", "s0"], ["a", "s1"], ["a", "s4"], ["a", "s5"],
        *(["ab"[number % 2], f"s{number}"] for number in range(6, 16)),
    ]  # fmt: skip


def test_what_is_trained_on_follows_the_same_decisions():
    found = effects(DECIDED, np.array([0, 1, 0, 1, 0, 1, 0, 1]), ["a", "b"])
    assert found.labels.tolist() == [0, 1, 0, 1, 0, 0, 0, 1]
    assert found.rows.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert found.is_wrong.tolist() == [False, True, True, False, False, True, False, False]
    assert effects({}, np.zeros(3, int), None).rows is None


def test_applying_decisions_twice_changes_nothing(scan):
    once = overruled(scan.verdicts, scan.decisions)
    twice = overruled(once, scan.decisions)
    assert once.codes.tolist() == twice.codes.tolist()
    assert once.suggested_labels.tolist() == twice.suggested_labels.tolist()
    assert once.about == twice.about


def test_a_relabel_is_not_lost_where_runs_suggest_nothing():
    verdicts = Verdicts(
        codes=np.array([FLAGGED, KEPT, FLAGGED], np.int8),
        scores=np.zeros(3),
        excess=np.zeros(3),
        judged_by=np.ones(3, np.int16),
        labels=np.array([0, 1, 1]),
    )
    found = overruled(verdicts, {0: Decision("relabel", "1"), 1: Decision("drop")})
    assert found.codes.tolist() == [FLAGGED, FLAGGED, FLAGGED]
    assert found.suggested_labels.tolist() == [1, -1, -1]


def test_decisions_about_unknown_samples_or_classes_are_refused():
    labels = np.array([0, 1])
    with pytest.raises(InputError, match="about sample 7, but there are 2 samples"):
        effects({7: Decision("drop")}, labels, ["a", "b"])
    with pytest.raises(InputError, match="sample 0 was relabeled as 'fox', which is none of the scan's classes"):
        effects({0: Decision("relabel", "fox")}, labels, ["a", "b"])
