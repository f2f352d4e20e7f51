"""What a report says; how a browser shows it is in test_report_page.py."""

import base64
import hashlib
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.stats import binomtest

from tests.scan_folders import finish, photos, texts
from undermargin import Trajectories, identify
from undermargin.errors import FolderError, InputError
from undermargin.report import describe, render, report
from undermargin.report.groups import interval
from undermargin.scans.folder import Folder
from undermargin.storage.json import to_json

WRONG = (3, 21, 40)


@pytest.fixture
def images(tmp_path):
    return finish(tmp_path / "scan", photos(tmp_path / "photos"), wrong=WRONG)


@pytest.fixture
def texts_scan(tmp_path):
    return finish(tmp_path / "texts", texts(tmp_path / "d.csv"), wrong=range(12))


def test_the_page_says_in_words_how_many_labels_look_wrong(images):
    page = report(images).read_text()
    assert report(images) == images / "report.html"
    assert re.search(r"<em>5\.0%</em> of 60 labels look wrong", page)


def test_the_histogram_counts_every_sample_once_and_every_threshold_sample(images):
    data = describe(images)["histogram"]
    assert (sum(data["flagged"]), sum(data["kept"])) == (3, 57)
    assert sum(data["threshold"]) == sum(int(run.is_threshold.sum()) for run in images.runs())
    cutoffs = images.read_json("summary.json")["cutoff"]["values"]
    assert [line["low"] for line in data["cutoffs"]] == cutoffs
    edges, flagged = np.array(data["edges"]), np.array(data["flagged"])
    assert edges[:-1][flagged > 0].max() < min(cutoffs)


def test_far_scores_are_counted_in_the_outermost_bins(images):
    run = images.runs()[0]
    far = np.where(np.arange(60) == 0, 1e6, run.scores)
    replace(run, scores=far).save(images / "fold0/scores.parquet")
    images.save_verdicts(identify(images.runs()))
    data = describe(images)["histogram"]
    assert sum(data["kept"]) + sum(data["flagged"]) == 60


def test_the_gallery_shows_the_flagged_samples_as_new_jpegs(images):
    gallery = describe(images)["gallery"]
    assert {sample["index"] for sample in gallery["samples"]} == set(WRONG)
    first = next(sample for sample in gallery["samples"] if sample["index"] == 21)
    assert (first["id"], first["label"], first["suggested_label"]) == ("dog/01.png", "dog", "eel")
    picture = Image.open(io.BytesIO(base64.b64decode(first["picture"].split(",")[1])))
    assert picture.format == "JPEG"
    assert picture.getpixel((5, 5))[1] == pytest.approx(150, abs=5)


def test_the_number_of_samples_is_bounded(images):
    assert len(describe(images, num_samples=2)["gallery"]["samples"]) == 2
    with pytest.raises(InputError, match="expected 0 to 5000"):
        describe(images, num_samples=10_000)


def test_pictures_stop_where_the_page_would_become_heavy(images, monkeypatch):
    monkeypatch.setattr("undermargin.report.gallery.MAX_PICTURE_BYTES", 1)
    shown = ["picture" in sample for sample in describe(images)["gallery"]["samples"]]
    assert shown == [True, False, False]


def test_no_place_on_the_disk_is_given_away(images, texts_scan, tmp_path):
    for folder in (images, texts_scan):
        data = describe(folder)
        assert str(tmp_path) not in render(data)
        assert str(tmp_path) not in to_json(data)


def test_without_thumbnails_nothing_of_the_data_is_shown(texts_scan):
    page = render(describe(texts_scan, has_thumbnails=False))
    assert "text number" not in page
    assert "left out on request" in page


def test_whatever_comes_from_the_data_is_escaped(texts_scan):
    page = render(describe(texts_scan, by=["city"]))
    assert page.count("<script") == 1  # ours
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>text</b>" not in page


def test_a_browser_may_run_only_our_own_style_and_script(images):
    page = render(describe(images))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        text = re.search(rf"<{tag}>(.*)</{tag}>", page, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r'\sstyle="', page)  # the policy would drop it


@pytest.mark.parametrize(("flagged", "samples"), [(0, 5), (1, 10), (37, 40), (8, 8), (120, 4000)])
def test_the_interval_is_wilsons(flagged, samples):
    theirs = binomtest(flagged, samples).proportion_ci(0.95, method="wilson")
    assert interval(flagged, samples) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_shares_by_class_agree_with_the_summary(images):
    rows = {row["value"]: row for row in describe(images)["groups"][0]["rows"]}
    for expected in images.read_json("summary.json")["classes"]:
        row = rows[expected["label"]]
        assert (row["num_samples"], row["num_flagged"]) == (expected["num_samples"], expected["num_flagged"])
        assert row["low"] <= row["flagged_share"] <= row["high"]


def test_a_small_group_does_not_lead_by_chance(tmp_path):
    frame = pd.DataFrame(
        {"text": [f"some text {n}" for n in range(202)], "label": ["a", "b"] * 101, "who": ["x"] * 100 + ["y"] * 102}
    )
    frame.loc[200:, "who"] = "rare"
    frame.to_csv(tmp_path / "d.csv", index=False)
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=[*range(40), 200])
    rows = describe(folder, by=["who"])["groups"][1]["rows"]
    assert [(row["value"], row["num_flagged"], row["num_samples"]) for row in rows] == [
        ("x", 40, 100),
        ("rare", 1, 2),  # one half, but of two
        ("y", 0, 100),
    ]
    assert [row["differs"] for row in rows] == ["higher", None, "lower"]


def test_many_numbers_are_cut_into_ranges_that_hold_every_sample(texts_scan):
    city, age = describe(texts_scan, by=["city", "age"])["groups"][1:]
    assert {row["value"] for row in city["rows"]} == {"Rome", "Oslo"}
    assert {row["value"] for row in age["rows"]} == {f"{low} to {low + 4}" for low in range(0, 30, 5)}
    assert {row["num_samples"] for row in age["rows"]} == {10}
    assert sum(row["num_flagged"] for row in age["rows"]) == 12


def test_rare_and_missing_values_are_counted_together(tmp_path):
    who = [f"person {n % 40}" for n in range(160)]
    frame = pd.DataFrame({"text": [f"some text {n}" for n in range(160)], "label": ["a", "b"] * 80, "who": who})
    frame.loc[:9, "who"] = None
    frame.to_csv(tmp_path / "d.csv", index=False)
    rows = describe(finish(tmp_path / "scan", tmp_path / "d.csv"), by=["who"])["groups"][1]["rows"]
    counts = {row["value"]: row["num_samples"] for row in rows}
    assert len(rows) == 32
    assert counts["(missing)"] == 10
    assert counts["10 other values"] == 30
    assert sum(counts.values()) == 160


def test_a_column_that_is_not_there_is_an_error_that_lists_the_others(texts_scan, images):
    with pytest.raises(InputError, match="no column is called 'town'; columns are text, label, age, city"):
        describe(texts_scan, by=["town"])
    with pytest.raises(InputError, match="has no column 'town': it is class folders"):
        describe(images, by=["town"])


def test_confusions_are_counted_among_the_flagged(tmp_path):
    folder = finish(tmp_path / "scan", photos(tmp_path / "photos"), wrong=(0, 1, 2, 25, 45))
    data = describe(folder)["confusions"]
    assert data["labels"] == ["cat", "dog", "eel"]
    assert data["counts"] == [[0, 3, 0], [0, 0, 1], [1, 0, 0]]
    assert data["pairs"][0] == {"label": "cat", "suggested_label": "dog", "num_samples": 3}


def test_of_many_classes_the_most_confused_are_shown(tmp_path):
    names = [f"intent {n:02d}" for n in range(77)]
    frame = pd.DataFrame([{"text": f"words of {name} {n}", "label": name} for name in names for n in range(4)])
    frame.to_csv(tmp_path / "d.csv", index=False)
    folder = finish(tmp_path / "scan", tmp_path / "d.csv", wrong=[*range(12), *range(16, 308, 4)])
    data = describe(folder)["confusions"]
    assert len(data["labels"]) == 20
    assert data["labels"][:4] == names[:4]
    assert sum(map(sum, data["counts"])) == data["num_shown"] < data["num_samples"]
    page = render(describe(folder))
    assert "of 77" in page
    assert 'data-folded="12"' in page


def test_margins_are_drawn_where_they_were_recorded(images):
    assert describe(images)["trajectories"] is None
    recorded = Trajectories(images.fold(1) / "trajectories")
    recorded.describe(["margin"], 60)
    for epoch in range(3):
        margins = np.arange(60, dtype=np.float32)[:, None] * (epoch + 1)
        recorded.write(epoch, (60, 1), [(slice(None), margins)])
    data = describe(images)["trajectories"]
    assert data["fold"] == 1
    by_index = {line["index"]: line for line in data["lines"]}
    assert by_index[21]["margins"] == [21, 42, 63]
    assert {line["verdict"] for line in data["lines"]} == {"flagged", "kept"}
    assert 'class="curve flagged"' in render(describe(images))


def test_nothing_flagged_is_said_in_words(tmp_path):
    page = render(describe(finish(tmp_path / "scan", photos(tmp_path / "photos"))))
    assert "None of 60 labels looks wrong" in page
    assert "No sample was flagged" in page


def test_data_from_memory_has_numbers_only(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    data = describe(finish(tmp_path / "scan", (x, [0, 1] * 20), wrong=[4]))
    assert "scanned from memory" in data["gallery"]["reason"]
    assert data["gallery"]["samples"][0]["index"] == 4
    assert "scanned from memory" in render(data)


def test_data_that_moved_or_changed_is_said_to_have(tmp_path, texts_scan):
    pd.read_csv(tmp_path / "d.csv")[:50].to_csv(tmp_path / "d.csv", index=False)
    assert "has changed" in describe(texts_scan)["gallery"]["reason"]
    (tmp_path / "d.csv").unlink()
    assert "no longer where" in describe(texts_scan)["gallery"]["reason"]
    assert "no longer where" in render(describe(texts_scan))


def test_one_damaged_picture_does_not_stop_the_report(images, tmp_path):
    (tmp_path / "photos/dog/01.png").write_bytes(b"no picture")
    samples = {sample["index"]: sample for sample in describe(images)["gallery"]["samples"]}
    assert "picture" not in samples[21]
    assert "picture" in samples[3]
    assert "no image" in render(describe(images))


def test_rows_of_a_table_are_shown_with_their_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 60), "job": ["clerk", "cook", "<i>"] * 20, "label": [0, 1] * 30})
    frame.to_parquet(tmp_path / "d.parquet")
    data = describe(finish(tmp_path / "scan", tmp_path / "d.parquet", wrong=[5]))
    assert data["gallery"]["samples"][0]["row"] == {"age": str(frame.age[5]), "job": "<i>"}
    assert "&lt;i&gt;" in render(data)


def test_a_cutoff_for_each_class_is_a_band(images):
    images.save_verdicts(identify(images.runs(), "per_class"))
    data = describe(images)
    assert data["histogram"]["cutoffs"][0]["low"] <= data["histogram"]["cutoffs"][0]["high"]
    assert "one cutoff per class" in render(data)


def test_a_scan_without_names_labels_or_config_still_gets_a_page(tmp_path, run):
    folder = Folder(tmp_path / "bare")
    one = run([1, -5, -4, 3, 2], threshold=[2])
    one.save(folder.fold(0) / "scores.parquet")
    folder.write_json("config.json", {"source": "somewhere"})
    folder.save_verdicts(identify(one))
    assert "20.0%" in report(folder).read_text()


def test_the_data_are_json_that_every_reader_takes(images):
    json.loads(to_json(describe(images)), parse_constant=pytest.fail)


def test_a_report_is_no_part_of_the_manifest(images):
    images.write_manifest()
    report(images)
    images.write_manifest()
    assert "report.html" not in images.read_json("manifest.json")["files"]
    report(images, num_samples=0)
    assert images.damaged() == []


def test_data_that_were_not_scanned_here_are_not_read(images, tmp_path):
    config = images.read_json("config.json")
    config["source"]["path"] = str(tmp_path)
    images.write_json("config.json", config)
    with pytest.raises(FolderError, match="was not scanned here, and names"):
        describe(images)
    assert describe(images, has_thumbnails=False)["num_samples"] > 0
