"""Data that changed after the scan are neither shown nor rewritten, by anything."""

import json
import os
import shutil
import subprocess
import sys

import datasets
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.scan_folders import finish, make_scan
from tests.scan_folders import photos as make_photos
from undermargin.errors import InputError
from undermargin.export import export
from undermargin.report import describe
from undermargin.review.cards import Cards
from undermargin.scans.cleaning import Cleaning
from undermargin.sources.base import Edit
from undermargin.sources.source import reopen

FRAME = pd.DataFrame(
    {
        "id": [f"row {n}" for n in range(40)],
        "text": [f"this is text number {n}" for n in range(40)],
        "label": ["a", "b"] * 20,
        "city": ["Rome", "Oslo", "Bonn", "Graz"] * 10,
    }
)
SHOWS = ("datasets", "label-studio")  # exports that hold the samples themselves


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".json":
        frame.to_json(path, orient="records")
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        shutil.rmtree(path, ignore_errors=True)
        datasets.Dataset.from_pandas(frame, preserve_index=False).save_to_disk(path)


def later(path):
    """As if it had been written a minute later, whatever the clock of the disk counts."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        state = file.stat()
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 60 * 10**9))


def rewritten(frame, path):
    write(frame, path)
    later(path)


@pytest.fixture(params=["d.csv", "d.jsonl", "d.json", "d.parquet", "d.xlsx", "saved"])
def rows(request, tmp_path):
    write(FRAME, tmp_path / request.param)
    return finish(tmp_path / "scan", tmp_path / request.param, wrong=(3, 8))


def path_of(folder):
    return folder.originals(folder.verdicts()).path


def test_reordered_rows_are_refused_by_review_report_export_and_clean(rows, tmp_path):
    """Sorting keeps the number of rows and the size of the file."""
    rewritten(FRAME[::-1].reset_index(drop=True), path_of(rows))
    with pytest.raises(InputError, match="has changed since the scan"):
        rows.originals(rows.verdicts()).check()
    with pytest.raises(InputError, match="has changed since the scan"):
        Cards(rows.verdicts(), rows.originals(rows.verdicts())).short([3], {})
    gallery = describe(rows)["gallery"]
    assert gallery["reason"] == "The data set has changed since it was scanned, so its samples cannot be shown."
    assert not any("text" in sample for sample in gallery["samples"])
    with pytest.raises(InputError, match="has changed since the scan"):
        describe(rows, by=["city"])
    for to in SHOWS:
        with pytest.raises(InputError, match="has changed since the scan"):
            export(rows, to, tmp_path / to)
    with pytest.raises(InputError, match="has changed since the scan"):
        Cleaning.of(rows.path).write(tmp_path / f"out{path_of(rows).suffix}")
    assert not list(tmp_path.glob("out*"))


def test_the_command_that_opens_the_page_refuses_reordered_rows(tmp_path):
    write(FRAME, tmp_path / "d.csv")
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=(3, 8))
    rewritten(FRAME[::-1], tmp_path / "d.csv")
    words = [sys.executable, "-m", "undermargin", "review", str(folder.path), "--no-open", "--port", "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "has changed since the scan" in done.stderr


def test_one_changed_cell_is_enough(rows, tmp_path):
    other = FRAME.copy()
    other.loc[5, "text"] = "this is text number x"
    rewritten(other, path_of(rows))
    with pytest.raises(InputError, match="has changed since the scan"):
        rows.originals(rows.verdicts()).text(0)


def test_a_copy_with_another_time_is_the_same_data(rows, tmp_path):
    later(path_of(rows))
    assert rows.originals(rows.verdicts()).text(3) == "this is text number 3"
    moved = path_of(rows).rename(tmp_path / f"moved{path_of(rows).suffix}")
    Cleaning.of(rows.path, data=moved).write(tmp_path / f"out{moved.suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_written_anew_with_the_same_rows_is_the_same_data(tmp_path, suffix):
    """Another writer, other bytes, such as quotes or another compression."""
    path = tmp_path / f"d{suffix}"
    write(FRAME, path)
    folder, before = finish(tmp_path / "scan", path, wrong=(3, 8)), path.read_bytes()
    if suffix == ".csv":
        FRAME.to_csv(path, index=False, quoting=1)
    else:
        FRAME.to_parquet(path, index=False, compression="zstd")
    assert path.read_bytes() != before
    later(path)
    assert folder.originals(folder.verdicts()).text(3) == "this is text number 3"


def test_rows_that_were_not_scanned_may_change(tmp_path):
    frame = FRAME.assign(split=["train", "train", "test", "test"] * 10)
    write(frame, tmp_path / "d.csv")
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=(3,), where="split=train")
    frame.loc[frame["split"] == "test", "text"] = "other words in the test split"
    rewritten(frame, tmp_path / "d.csv")
    Cleaning.of(folder.path).write(tmp_path / "out.csv")
    frame.loc[0, "text"] = "other words in the training split"
    rewritten(frame, tmp_path / "d.csv")
    with pytest.raises(InputError, match="has changed since the scan"):
        Cleaning.of(folder.path).write(tmp_path / "again.csv")


def test_arrays_that_changed_are_refused(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    np.savez(tmp_path / "d.npz", x=pixels, y=[0, 1] * 20)
    folder = finish(tmp_path / "scan", tmp_path / "d.npz", wrong=(3,))
    np.savez(tmp_path / "d.npz", x=pixels[::-1], y=[1, 0] * 20)
    later(tmp_path / "d.npz")
    with pytest.raises(InputError, match="has changed since the scan"):
        folder.originals(folder.verdicts()).picture(0, 64)
    assert "changed" in describe(folder)["gallery"]["reason"]
    with pytest.raises(InputError, match="has changed since the scan"):
        Cleaning.of(folder.path).write(tmp_path / "out.npz")


@pytest.fixture
def photos(tmp_path):
    return make_scan(make_photos(tmp_path / "photos"), tmp_path / "scan", flagged=[3, 21, 40])


def of_version_01(folder):
    """What a scan of version 0.1 left: no record of its files."""
    config = json.loads((folder / "config.json").read_text())
    for name in ("files", "image_files"):
        config["source"].pop(name, None)
    folder.write_json("config.json", config)
    return folder


@pytest.mark.parametrize("is_old", [False, True])
def test_cleaning_class_folders_whose_pictures_changed_is_refused(photos, tmp_path, is_old):
    folder = of_version_01(photos) if is_old else photos
    Cleaning.of(folder.path).write(tmp_path / "before")
    Image.new("RGB", (40, 30), (1, 2, 3)).save(tmp_path / "photos/dog/05.png")
    later(tmp_path / "photos/dog")
    more = "" if is_old else ": 1 of 60 images, the first is dog/05.png"
    with pytest.raises(InputError, match=f"photos has changed since the scan{more}"):
        Cleaning.of(folder.path).write(tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
    for to in ("datasets", "label-studio", "fiftyone"):
        with pytest.raises(InputError, match="has changed since the scan"):
            export(folder, to, tmp_path / f"{to}.json")


def test_a_changed_picture_is_not_shown_and_the_others_are(photos, tmp_path):
    Image.new("RGB", (40, 30), (1, 2, 3)).save(tmp_path / "photos/dog/01.png")  # index 21
    later(tmp_path / "photos/dog")
    with pytest.raises(InputError, match="has changed since the scan: dog/01.png is another image"):
        photos.originals(photos.verdicts()).picture(21, 64)
    folder = finish(tmp_path / "other", make_photos(tmp_path / "more"), wrong=(3, 21, 40))
    Image.new("RGB", (40, 30), (1, 2, 3)).save(tmp_path / "more/dog/01.png")
    samples = describe(folder)["gallery"]["samples"]
    assert {sample["index"] for sample in samples if "picture" in sample} == {3, 40}


def test_class_folders_that_were_copied_are_the_same_data(photos, tmp_path):
    shutil.copytree(tmp_path / "photos", tmp_path / "moved", copy_function=shutil.copy)
    shutil.rmtree(tmp_path / "photos")
    Cleaning.of(photos.path, data=tmp_path / "moved").write(tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.png"))) == 57


def test_pictures_that_a_table_names_are_compared_too(tmp_path):
    root = make_photos(tmp_path / "photos", names=("cat", "dog"), count=8)
    names = [f"{name}/{number:02d}.png" for name in ("cat", "dog") for number in range(8)]
    pd.DataFrame({"image": names, "label": ["cat"] * 8 + ["dog"] * 8}).to_csv(root / "d.csv", index=False)
    folder = make_scan(root / "d.csv", tmp_path / "scan", flagged=[1])
    source = folder.originals(folder.verdicts())
    assert source.picture(3, 64)
    Image.new("RGB", (40, 30), (1, 2, 3)).save(root / "cat/03.png")
    later(root / "cat")
    with pytest.raises(InputError, match="the image cat/03.png is another one"):
        source.picture(3, 64)
    assert source.picture(2, 64)
    with pytest.raises(InputError, match="1 of 16 images, the first is .*cat/03.png"):
        Cleaning.of(folder.path).write(root.parent / "out.csv")


def test_images_in_parquet_that_changed_are_refused_also_for_scans_of_version_01(tmp_path):
    import io

    def encoded(n):
        data = io.BytesIO()
        Image.new("RGB", (32, 32), (n, 0, 0)).save(data, "PNG")
        return {"bytes": data.getvalue(), "path": None}

    frame = pd.DataFrame({"image": [encoded(n) for n in range(16)], "label": [0, 1] * 8})
    frame.to_parquet(tmp_path / "d.parquet")
    new = make_scan(tmp_path / "d.parquet", tmp_path / "new", flagged=[1])
    old = of_version_01(make_scan(tmp_path / "d.parquet", tmp_path / "old", flagged=[1]))
    for folder in (new, old):
        Cleaning.of(folder.path).write(tmp_path / f"{folder.path.name}.parquet")
    swapped = frame.copy()
    swapped["image"] = [frame["image"][n ^ 2] for n in range(16)]  # the labels stay in place
    swapped.to_parquet(tmp_path / "d.parquet")
    later(tmp_path / "d.parquet")
    for folder in (new, old):
        with pytest.raises(InputError, match="has changed since the scan"):
            Cleaning.of(folder.path).write(tmp_path / "out.parquet")
    with pytest.raises(InputError, match="has changed since the scan"):
        new.originals(new.verdicts()).picture(0, 64)


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret"])
def test_a_link_that_leads_out_of_the_data_is_not_copied_through(tmp_path, name):
    root = make_photos(tmp_path / "photos")
    (tmp_path / "secret").write_text("private")
    target = "/etc/hostname" if name.startswith("/") else tmp_path / "secret"
    (root / "cat" / "notes.txt").symlink_to(target)
    (root / "dog" / "nowhere.txt").symlink_to(tmp_path / "missing")
    folder = make_scan(root, tmp_path / "scan", flagged=[1])
    Cleaning.of(folder.path).write(tmp_path / "out")
    assert (tmp_path / "out/cat/notes.txt").is_symlink()
    assert (tmp_path / "out/cat/02.png").is_file()
    assert not (tmp_path / "out/cat/02.png").is_symlink()


def test_links_within_the_data_are_copied_as_files(tmp_path):
    root = make_photos(tmp_path / "photos")
    (root / "cat" / "again.png").symlink_to("00.png")
    folder = make_scan(root, tmp_path / "scan", flagged=[1])
    Cleaning.of(folder.path).write(tmp_path / "out")
    assert (tmp_path / "out/cat/again.png").read_bytes() == (root / "cat/00.png").read_bytes()
    assert not (tmp_path / "out/cat/again.png").is_symlink()


def test_an_id_that_leads_out_of_the_data_is_neither_read_nor_written(tmp_path):
    """A folder from someone else may name any file as a sample."""
    root = make_photos(tmp_path / "photos")
    make_photos(tmp_path / "other")
    folder = make_scan(root, tmp_path / "scan", flagged=[1])
    verdicts = folder.verdicts()
    ids = ["../other/cat/00.png", *verdicts.ids[1:]]
    for source in ({"path": str(root), "format": "class folders"}, folder.read_json("config.json")["source"]):
        foreign = reopen(source, "images", ids)
        with pytest.raises(InputError, match="not below|gone"):
            foreign.picture(0, 64)
        with pytest.raises(InputError, match=r"1 images of the scan are gone, the first is \.\./other"):
            foreign.rewrite(tmp_path / "out", Edit(np.ones(60, bool), np.zeros(60, int)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("path", 5), ("where", ["a"]), ("label", {}), ("files", "x"), ("files", {"times": 3}), ("skipped_rows", [-1]),
     ("skipped_rows", "ab"), ("image_size", "large"), ("image_size", 10**9), ("columns", 3), ("format", [])],
)  # fmt: skip
def test_a_config_of_another_shape_is_one_line(name, value):
    with pytest.raises(InputError, match=f"config.json is damaged: its source has {name} = "):
        reopen({"path": "/data", "format": "CSV", "label": "label"} | {name: value}, "table", ["0"])


def test_the_whole_table_is_read_before_the_page_is_served(tmp_path):
    write(FRAME, tmp_path / "d.csv")
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=(3, 8))
    source = folder.originals(folder.verdicts())
    source.prepare()
    (tmp_path / "d.csv").unlink()
    assert source.text(3) == "this is text number 3"
