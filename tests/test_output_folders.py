"""Where a scan and what comes after it may be written: the user's own files are never touched."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.scan_folders import finish, photos, texts
from undermargin import Scan, scan
from undermargin.errors import FolderError, InputError, UndermarginError
from undermargin.storage.files import making, replacing


@pytest.fixture
def points():
    x = np.random.default_rng(0).normal(size=(120, 2)) + 4 * np.eye(2)[np.arange(120) % 2]
    return x.astype(np.float32), np.arange(120) % 2


def contents(path):
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


@pytest.mark.parametrize("name", ["pixels.bin", "manifest.json", "summary.json", "verdicts.csv", "notes/today.txt"])
def test_a_folder_of_other_files_is_refused_and_left_as_it_was(points, tmp_path, name):
    project = tmp_path / "project"
    (project / name).parent.mkdir(parents=True)
    (project / name).write_text("mine")
    before = contents(project)
    with pytest.raises(FolderError, match="holds 1 other files or folders .* and no scan; choose a new folder"):
        scan(points, project, epochs=1)
    with pytest.raises(UndermarginError):
        scan(tmp_path / "missing.csv", project)
    assert contents(project) == before


def test_the_data_and_the_scan_are_kept_apart(tmp_path):
    data = photos(tmp_path / "photos", names=("cat", "dog"))
    before = contents(data)
    for out in (data, data / "scan", data / "cat"):
        with pytest.raises(InputError, match="lies inside the data"):
            scan(data, out)
    with pytest.raises(InputError, match="contains the data"):
        scan(data, tmp_path)
    (tmp_path / "link").symlink_to(data)
    with pytest.raises(InputError, match="lies inside the data"):
        scan(data, tmp_path / "link" / "scan")
    assert contents(data).keys() == before.keys()


def test_a_file_in_place_of_the_folder_is_said_in_words(points, tmp_path):
    (tmp_path / "scan").write_text("mine")
    np.savez(tmp_path / "d.npz", x=points[0], y=points[1])
    words = [sys.executable, "-m", "undermargin", "scan", str(tmp_path / "d.npz"), "--out", str(tmp_path / "scan")]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert result.returncode == 1
    assert (
        result.stderr
        == f"error: {tmp_path / 'scan'} is a file; a scan needs a folder. Choose another path with --out\n"
    )
    assert (tmp_path / "scan").read_text() == "mine"


def test_a_scan_that_could_not_read_its_data_leaves_nothing(tmp_path):
    with pytest.raises(UndermarginError):
        scan(tmp_path / "missing.csv", tmp_path / "scans" / "one")
    assert not (tmp_path / "scans" / "one").exists()


def test_an_empty_folder_and_a_scan_that_was_just_begun_are_fine(points, tmp_path):
    (tmp_path / "scan").mkdir()
    (tmp_path / "scan" / ".lock").touch()
    (tmp_path / "scan" / ".config.json.0123456789abcdef.part").touch()
    assert len(scan(points, tmp_path / "scan", epochs=1).verdicts) == 120


def test_cleaning_and_exporting_leave_files_called_part_alone(tmp_path):
    folder = finish(tmp_path / "scan", texts(tmp_path / "d.csv"), wrong=[3, 4])
    mine = {tmp_path / "clean.csv.part": "clean", tmp_path / "out.csv.part": "out", tmp_path / "page.html.part": "page"}
    for path, text in mine.items():
        path.write_text(text)
    opened = Scan.open(folder.path)
    opened.clean(tmp_path / "clean.csv")
    opened.export("csv", tmp_path / "out.csv")
    opened.report(tmp_path / "page.html")
    assert {path: path.read_text() for path in mine} == mine


def test_cleaning_class_folders_leaves_a_folder_called_part_alone(tmp_path):
    folder = finish(tmp_path / "scan", photos(tmp_path / "photos"), wrong=[3])
    (tmp_path / "clean.part").mkdir()
    (tmp_path / "clean.part" / "mine.txt").write_text("mine")
    Scan.open(folder.path).clean(tmp_path / "clean")
    assert (tmp_path / "clean.part" / "mine.txt").read_text() == "mine"


def test_a_folder_that_is_being_made_by_another_process_is_left_alone(tmp_path):
    with making(tmp_path / "out") as first:
        (first / "a").write_text("1")
        with making(tmp_path / "out") as second:
            assert first != second
            assert first.is_dir()
            (second / "a").write_text("2")
        shutil.rmtree(tmp_path / "out")
    assert (tmp_path / "out" / "a").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_replaced_whole_or_not_at_all_and_links_are_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "name").symlink_to(tmp_path / "victim")
    with replacing(tmp_path / "name") as partial:
        partial.write_text("new")
    assert ((tmp_path / "name").read_text(), (tmp_path / "victim").read_text()) == ("new", "precious")
    with pytest.raises(TypeError), replacing(tmp_path / "name") as partial:
        partial.write_text(b"half")
    assert (tmp_path / "name").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"name", "victim"}
