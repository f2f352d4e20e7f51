"""A scan's folder that was damaged, left unfinished, or made by somebody else: nothing is lost, and errors say why."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.scan_folders import finish, photos
from undermargin import Scan
from undermargin.cli import app
from undermargin.errors import FolderError, UndermarginError
from undermargin.storage import consent
from undermargin.storage.tensors import load_tensors, save_tensors

WRONG = (3, 21, 40)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    place = tmp_path_factory.mktemp("original")
    folder = finish(place / "scan", photos(place / "photos"), wrong=WRONG)
    folder.write_manifest()
    return folder


@pytest.fixture
def folder(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "scan")
    consent.confirm(tmp_path / "scan", original.path.parent / "photos")
    return tmp_path / "scan"


def undermargin(*words):
    return subprocess.run([sys.executable, "-m", "undermargin", *words], capture_output=True, text=True, timeout=300)


COMMANDS = {
    "identify": lambda scan, place: scan.identify(),
    "report": lambda scan, place: scan.report(place / "page.html"),
    "clean": lambda scan, place: scan.clean(),
    "export": lambda scan, place: scan.export("csv", place / "out.csv"),
    "review": lambda scan, place: scan.export_decisions(place / "decisions.csv"),
}


@pytest.mark.parametrize(
    "name", [".lock", "verdicts.csv", "verdicts.csv.part", "summary.json", "decisions.sqlite", "decisions.sqlite-wal",
             "fold0/log.jsonl", "fold0/scores.parquet.part"],
)  # fmt: skip
def test_a_link_in_a_folder_is_refused_and_what_it_leads_to_is_left_alone(folder, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    for command in COMMANDS.values():
        with pytest.raises(FolderError, match="follows no links inside a scan's folder"):
            command(Scan.open(folder), tmp_path)
    assert victim.read_text() == "precious"
    assert set(tmp_path.iterdir()) == {folder, victim}


def test_identify_destroys_nothing_through_links_that_are_made_after_opening(folder, tmp_path):
    victims = [tmp_path / "lock", tmp_path / "part"]
    opened = Scan.open(folder)
    for victim, name in zip(victims, (".lock", "verdicts.csv.part"), strict=True):
        victim.write_text("precious")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim)
    with pytest.raises(FolderError, match="follows no links"):
        opened.identify()
    assert [victim.read_text() for victim in victims] == ["precious"] * 2


def test_a_folder_of_the_fold_cannot_be_a_link_either(folder, tmp_path):
    shutil.move(folder / "fold1", tmp_path / "elsewhere")
    (folder / "fold1").symlink_to(tmp_path / "elsewhere")
    result = undermargin("identify", str(folder))
    assert (result.returncode, result.stdout) == (1, "")
    assert "1 symbolic links or special files, the first is fold1" in result.stderr


def test_the_lock_is_never_truncated(folder):
    (folder / ".lock").write_text("notes of mine")
    Scan.open(folder).identify()
    assert (folder / ".lock").read_text() == "notes of mine"


def test_files_that_only_look_like_temporary_ones_stay(folder):
    for name in ("verdicts.csv.part", "summary.json.part", "pixels.bin"):
        (folder / name).write_text("mine")
    Scan.open(folder).identify()
    for name in ("verdicts.csv.part", "summary.json.part", "pixels.bin"):
        assert (folder / name).read_text() == "mine"


def test_what_a_kill_left_is_removed_at_the_next_start(folder):
    left = [
        folder / ".verdicts.csv.0123456789abcdef.part",
        folder / "fold0" / ".checkpoint.safetensors.00000000deadbeef.part",
    ]
    left.append(folder / ".pixels.0123456789abcdef")
    for path in left:
        path.write_text("half of a file")
    Scan.open(folder).identify()
    assert not any(path.exists() for path in left)


def test_the_database_of_another_program_is_left_alone(folder, tmp_path):
    with sqlite3.connect(folder / "decisions.sqlite") as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    before = (folder / "decisions.sqlite").read_bytes()
    for name in ("clean", "export", "review", "report"):
        with pytest.raises(FolderError, match="database of another program"):
            COMMANDS[name](Scan.open(folder), tmp_path)
    assert (folder / "decisions.sqlite").read_bytes() == before


def test_decisions_that_cannot_be_ours_are_refused(folder, tmp_path):
    log = Scan.open(folder)._folder.decisions()
    log.close()
    for values in ((10**6, "drop", None), (-1, "drop", None), (3, "relabel", None), (3, "keep", "cat")):
        shutil.copy(folder / "decisions.sqlite", tmp_path / "kept.sqlite")
        with sqlite3.connect(folder / "decisions.sqlite") as other:
            other.execute(
                "INSERT INTO log (sample, action, label, note, time, who) VALUES (?, ?, ?, '', '', '')", values
            )
        other.close()
        with pytest.raises(UndermarginError, match="is damaged: line 1|about sample|expected"):
            Scan.open(folder).clean()
        shutil.copy(tmp_path / "kept.sqlite", folder / "decisions.sqlite")


@pytest.mark.parametrize(
    ("name", "command", "repair"),
    [
        ("fold0/scores.parquet", "identify", "train this fold again"),
        ("fold1/scores.parquet", "report", "train this fold again"),
        ("verdicts.parquet", "report", "undermargin identify"),
        ("verdicts.parquet", "clean", "undermargin identify"),
        ("verdicts.parquet", "export", "undermargin identify"),
        ("config.json", "clean", "Bring back a copy"),
        ("summary.json", "report", "undermargin identify"),
    ],
)
def test_one_flipped_bit_is_noticed_and_the_error_says_what_to_do(folder, tmp_path, name, command, repair):
    flip(folder / name)
    with pytest.raises(FolderError, match=f"{name} does not match its checksum.*{repair}"):
        COMMANDS[command](Scan.open(folder), tmp_path)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_damaged_verdicts_are_repaired_by_identify(folder):
    before = Scan.open(folder).verdicts.codes.tolist()
    for name in ("verdicts.parquet", "verdicts.csv", "summary.json"):
        flip(folder / name)
    assert Scan.open(folder).identify("paper").codes.tolist() == before
    assert Scan.open(folder)._folder.damaged() == []


def test_scores_are_verified_where_there_is_no_manifest_yet(folder):
    (folder / "manifest.json").unlink()
    data = bytearray((folder / "fold0/scores.parquet").read_bytes())
    data[40] ^= 1  # in the first column's page
    (folder / "fold0/scores.parquet").write_bytes(data)
    with pytest.raises(UndermarginError, match="is not a run written by undermargin"):
        Scan.open(folder).identify()


def test_a_flipped_bit_in_a_checkpoint_is_noticed(tmp_path):
    import torch

    path = tmp_path / "checkpoint.safetensors"
    save_tensors(path, {"w": torch.arange(64.0), "b": torch.ones(3, dtype=torch.bfloat16)}, about='{"epoch": 3}')
    about, tensors = load_tensors(path)
    assert (about, tensors["w"].tolist()[:2]) == ({"epoch": 3}, [0, 1])
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(UndermarginError, match="do not match its checksum"):
        load_tensors(path)


def test_interrupted_between_verdicts_and_manifest_a_scan_still_opens(folder, monkeypatch):
    opened = Scan.open(folder)

    def killed(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("undermargin.scans.manifest.Manifest.write", killed)
    with pytest.raises(KeyboardInterrupt):
        opened.identify("gaussian")
    assert Scan.open(folder).verdicts.about["cutoff"]["name"] == "gaussian"
    assert Scan.open(folder).summary["cutoff"]["name"] == "gaussian"


def test_an_unfinished_scan_is_not_judged_and_the_error_names_the_missing_fold(folder, tmp_path):
    (folder / "fold1/scores.parquet").unlink()
    (folder / "fold1/log.jsonl").write_text('{"epoch": 0, "seconds": 1.0}\n{"epoch": 1, "seconds": 1.0}\n')
    before = (folder / "verdicts.parquet").read_bytes()
    for name in ("identify", "report"):
        with pytest.raises(FolderError, match=r"unfinished: of 2 folds, fold 1 \(2 epochs trained\) has no scores"):
            COMMANDS[name](Scan.open(folder), tmp_path)
    assert (folder / "verdicts.parquet").read_bytes() == before
    result = undermargin("report", str(folder))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    (folder / "verdicts.parquet").unlink()
    assert "unfinished" in repr(Scan.open(folder))


@pytest.mark.parametrize("name", ["config.json", "summary.json", "manifest.json"])
@pytest.mark.parametrize(
    "content", [b"\xff\xfe{}", b"[]", b"5", b'"text"', b"null", b"{", b"", b"[" * 100_000, b'{"files": 3, "notes": 7}']
)
def test_control_files_that_hold_something_else_are_one_clear_error(folder, tmp_path, name, content):
    if name != "manifest.json":
        (folder / "manifest.json").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(FolderError, match=f"{name} is damaged"):
        Scan.open(folder).report(tmp_path / "page.html")


@pytest.mark.parametrize(
    ("name", "entry", "value"),
    [
        ("config.json", "source", 5), ("config.json", "source", {"format": 3}), ("config.json", "fingerprint", []),
        ("config.json", "class_names", "cat"), ("config.json", "trusted", {"x": 1}), ("config.json", "kind", {}),
        ("config.json", "trusted", {"3": ["burn", None]}), ("config.json", "num_folds", 10**12),
        ("config.json", "num_folds", True), ("summary.json", "cutoff", None), ("summary.json", "classes", [1]),
        ("summary.json", "notes", "none"), ("summary.json", "num_flagged", "3"),
    ],
)  # fmt: skip
def test_an_entry_of_the_wrong_type_is_named(folder, tmp_path, name, entry, value):
    (folder / "manifest.json").unlink()
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(data | {entry: value}))
    with pytest.raises(FolderError, match=rf"{name} is damaged: .*{entry}"):
        Scan.open(folder).report(tmp_path / "page.html")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", ["summary.json", "manifest.json", "decisions.sqlite", "verdicts.parquet"])
def test_a_pipe_in_a_folder_does_not_hang(folder, tmp_path, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(FolderError, match="special files, the first is"):
        Scan.open(folder).report(tmp_path / "page.html")


def test_the_errors_are_one_line_on_the_command_line(folder):
    (folder / "manifest.json").unlink()
    (folder / "summary.json").write_bytes(b"\xff")
    result = CliRunner().invoke(app, ["report", str(folder)])
    assert isinstance(result.exception, FolderError)
