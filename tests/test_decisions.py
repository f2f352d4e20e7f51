"""What people decided: a log that is never rewritten, and its CSV."""

import sqlite3
import subprocess
import sys
import threading

import pytest

from tests.scan_folders import make_scan
from undermargin.errors import FolderError, InputError
from undermargin.review.sheet import exchange
from undermargin.scans.decisions import Change, Decision, Decisions


@pytest.fixture
def decisions(tmp_path):
    opened = Decisions.open(tmp_path / "decisions.sqlite")
    yield opened
    opened.close()


def test_the_last_decision_counts_and_taking_back_leaves_none(decisions):
    decisions.decide([Change(3, Decision("keep")), Change(5, Decision("relabel", "dog", "blurred"))], who="anna")
    decisions.decide([Change(3, Decision("drop"))], who="ben")
    latest = decisions.latest()
    assert (latest[3].action, latest[3].who) == ("drop", "ben")
    assert (latest[5].action, latest[5].label, latest[5].note, latest[5].who) == ("relabel", "dog", "blurred", "anna")
    assert latest[5].when.endswith("+00:00")
    decisions.decide([Change(3, None)])
    assert set(decisions.latest()) == {5}
    assert set(decisions.entries(as_of=2)) == {3, 5}
    assert decisions.entries(as_of=2)[3].decision.action == "keep"


def test_whoever_saw_an_older_version_is_told_and_overwrites_nothing(tmp_path, decisions):
    other = Decisions.open(tmp_path / "decisions.sqlite")
    first = decisions.decide([Change(1, Decision("keep"), seen=0)])
    late = other.decide([Change(1, Decision("drop"), seen=0), Change(2, Decision("drop"), seen=0)])
    assert set(late.saved) == {2}
    assert late.conflicts[1] == first.saved[1]
    assert decisions.latest()[1].action == "keep"
    again = other.decide([Change(1, Decision("drop"), seen=late.conflicts[1].version)])
    assert not again.conflicts
    assert decisions.latest()[1].action == "drop"
    other.close()


def test_of_many_at_once_one_wins(tmp_path):
    results = []

    def decide(number):
        log = Decisions.open(tmp_path / "decisions.sqlite")
        results.append(log.decide([Change(0, Decision("keep", note=str(number)), seen=0)]))
        log.close()

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(result.saved) for result in results) == 1
    assert sum(len(result.conflicts) for result in results) == 7


def test_what_was_confirmed_survives_a_kill(tmp_path):
    code = f"""
import os, signal
from undermargin.scans.decisions import *
log = Decisions.open({str(tmp_path / "d.sqlite")!r})
for index in range(20):
    log.decide([Change(index, Decision("keep"))])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == -9
    log = Decisions.open(tmp_path / "d.sqlite")
    assert set(log.latest()) == set(range(20))
    log.close()


def test_a_log_belongs_to_its_data(tmp_path):
    Decisions.open(tmp_path / "d.sqlite", fingerprint="abc").close()
    with pytest.raises(FolderError, match="decisions about other data .fingerprint abc, the scan's is xyz"):
        Decisions.open(tmp_path / "d.sqlite", fingerprint="xyz")


def test_a_file_that_is_no_log_is_one_line(tmp_path):
    (tmp_path / "d.sqlite").write_text("something else entirely, long enough to be looked at" * 20)
    with pytest.raises(FolderError, match="cannot be used"):
        Decisions.open(tmp_path / "d.sqlite")
    with sqlite3.connect(tmp_path / "new.sqlite") as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(FolderError, match="newer undermargin"):
        Decisions.open(tmp_path / "new.sqlite")


@pytest.fixture
def scan(tmp_path):
    rows = [f"word{number} and more words,{'ab'[number % 2]},s{number}" for number in range(8)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label,id", *rows]))
    return make_scan(tmp_path / "d.csv", tmp_path / "scan", flagged=[1, 2, 3])


def imported(scan, tmp_path, text):
    (tmp_path / "in.csv").write_text(text)
    return exchange(scan, tmp_path / "in.csv", None)


def test_decisions_go_out_as_csv_and_come_back(scan, tmp_path):
    first = 's1,relabel,a,"well, yes",2026-01-02T03:04:05+00:00,anna'
    text = f"id,action,label,note,when,who\n{first}\ns2,drop,,,,\ns3,keep,,,,\n"
    assert imported(scan, tmp_path, text) == {"num_imported": 3, "num_replaced": 0}
    assert exchange(scan, None, tmp_path / "out.csv") == {"num_exported": 3}
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1] == first
    assert imported(scan, tmp_path, "id,action\ns1,drop\n") == {"num_imported": 1, "num_replaced": 1}


def test_to_relabel_as_what_it_is_means_to_keep(scan, tmp_path):
    imported(scan, tmp_path, "id,action,label\ns1,relabel,b\n")
    log = scan.decisions()
    assert log.latest()[1].action == "keep"
    log.close()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("s99,drop,", "line 3: the scan has no sample with the id 's99'"),
        ("s1,relabel,c", "line 3: there is no class 'c'; classes are a, b"),
        ("s2,drop,", "line 3: 's2' has another row in this file"),
        ("s1,remove,", "line 3: 'remove' is none of keep, relabel, drop"),
        ("s1,relabel,", "line 3: only relabel has a label"),
        ("s1,keep,a", "line 3: only relabel has a label"),
    ],
)
def test_a_row_that_is_wrong_is_one_line_and_nothing_is_imported(scan, tmp_path, row, message):
    with pytest.raises(InputError, match=message):
        imported(scan, tmp_path, f"id,action,label\ns2,keep,\n{row}\n")
    log = scan.decisions()
    assert log.latest() == {}
    log.close()


def test_the_manifest_does_not_freeze_what_people_go_on_writing(scan):
    scan.write_manifest()
    log = scan.decisions()
    log.decide([Change(0, Decision("keep"))])
    assert scan.damaged() == []
    log.close()
