import json
import subprocess
import sys

import pytest

from undermargin import Run, Verdicts, identify
from undermargin.errors import FolderError, InputError
from undermargin.scans.folder import Folder


@pytest.fixture
def folder(tmp_path, run):
    made = Folder(tmp_path / "scan")
    with made.locked():
        made.write_json("config.json", {"seed": 0})
        runs = [
            run([1, 5, 0], threshold=[2], labels=[0, 1, 0]),
            run([2, 5, 1], threshold=[0], labels=[0, 1, 0]),
        ]
        for number, one in enumerate(runs):
            one.save(made.fold(number) / "scores.parquet")
        made.save_verdicts(identify(runs), seconds=1.5)
        made.write_manifest()
    return made


def test_a_finished_folder_holds_what_the_design_says(folder):
    names = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    assert names - {".lock"} == {
        "config.json",
        "manifest.json",
        "summary.json",
        "verdicts.parquet",
        "verdicts.csv",
        "fold0/scores.parquet",
        "fold1/scores.parquet",
    }
    assert folder.read_json("summary.json")["seconds"] == 1.5
    assert len(Verdicts.load(folder / "verdicts.parquet")) == 3
    assert folder.damaged() == []


def test_runs_come_back_as_they_were(folder):
    first, second = folder.runs()
    assert first.scores.tolist() == [1, 5, 0]
    assert second.is_threshold.tolist() == [True, False, False]


def test_the_manifest_notices_changed_and_missing_files(folder):
    (folder / "verdicts.csv").write_text("changed")
    (folder / "summary.json").unlink()
    assert folder.damaged() == ["summary.json", "verdicts.csv"]


def test_a_second_writer_is_kept_out_while_the_first_lives(folder):
    script = f"""
from undermargin.scans.folder import Folder
import sys, time
with Folder({str(folder.path)!r}).locked():
    print("locked", flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(FolderError, match="in use by another process"), folder.locked():
            pass
    finally:
        holder.kill()
        holder.communicate()
    with folder.locked():  # a killed process leaves no lock behind
        pass


def test_folders_that_are_no_scans_are_refused(tmp_path):
    with pytest.raises(FolderError, match="there is no folder"):
        Folder.open(tmp_path / "missing")
    with pytest.raises(FolderError, match="has no config.json"):
        Folder.open(tmp_path)


def test_missing_and_damaged_files_are_errors_that_name_them(folder):
    (folder / "summary.json").write_text("{")
    with pytest.raises(FolderError, match="summary.json does not match its checksum"):
        folder.read_json("summary.json")
    (folder / "manifest.json").unlink()
    with pytest.raises(FolderError, match="summary.json is damaged"):
        folder.read_json("summary.json")
    (folder / "summary.json").unlink()
    with pytest.raises(FolderError, match=r"has no summary.json; it can be written again with 'undermargin identify'"):
        folder.read_json("summary.json")


def test_a_run_file_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "scores.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a run"):
        Run.load(tmp_path / "scores.parquet")


def test_a_write_that_fails_leaves_the_old_file(folder, monkeypatch):
    before = (folder / "summary.json").read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write_json("summary.json", {"new": True})
    assert json.loads((folder / "summary.json").read_text()) == json.loads(before)
