"""What every format must do, tested over the table: a new row is covered the moment it exists."""

import json
import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.scan_folders import make_scan
from undermargin.errors import InputError
from undermargin.plugins import Table
from undermargin.sources.base import Edit, Source
from undermargin.sources.samples import Reading, Samples
from undermargin.sources.source import FORMATS, Format, load, reopen

NAMES = list(FORMATS)
SRC = Path(__file__).parent.parent / "src" / "undermargin"
FRAME = pd.DataFrame(
    {"text": [f"this is text number {n}" for n in range(12)], "label": ["a", "b"] * 6, "city": ["Rome", "Oslo"] * 6}
)


def make(name, folder):
    """A small data set of this format, with twelve samples of the classes a and b in turn."""
    suffix = FORMATS[name].suffixes[0] if FORMATS[name].suffixes else ""
    path = folder / f"data{suffix}"
    writers = {
        "CSV": lambda: FRAME.to_csv(path, index=False),
        "TSV": lambda: FRAME.to_csv(path, index=False, sep="\t"),
        "JSON lines": lambda: FRAME.to_json(path, orient="records", lines=True),
        "JSON": lambda: path.write_text(json.dumps(FRAME.to_dict("records"), indent=1)),
        "Excel": lambda: FRAME.to_excel(path, index=False),
        "Parquet": lambda: FRAME.to_parquet(path, index=False),
        "Dataset": lambda: datasets.Dataset.from_pandas(FRAME).save_to_disk(path),
        "arrays": lambda: np.savez(path, x=np.arange(12 * 64, dtype=np.uint8).reshape(12, 8, 8), y=[*"ab"] * 6),
        "class folders": lambda: make_folders(path),
    }
    writers[name]()
    return path


def make_folders(path):
    for n in range(12):
        file = path / "ab"[n % 2] / f"{n:02d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (20 * n, 0, 0)).save(file)


def opened(path, **reading):
    samples = load(path, Reading(**reading))
    ids = samples.ids or [str(index) for index in range(len(samples))]
    return reopen(samples.found, samples.kind, ids, fingerprint=samples.fingerprint()), samples


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_recognized_loaded_and_opened_again(name, tmp_path):
    source, samples = opened(make(name, tmp_path))
    assert (len(samples), samples.class_names, samples.found["format"]) == (12, ["a", "b"], name)
    assert type(source) is FORMATS[name].source
    assert json.loads(json.dumps(samples.found)) == samples.found  # it is stored as JSON
    source.check(is_thorough=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_shows_its_samples(name, tmp_path):
    source, samples = opened(make(name, tmp_path))
    if samples.kind == "text":
        assert source.text(5) == samples.inputs[5] == "this is text number 5"
        assert source.row(5)["label"] == "b"
        assert source.cells(5) == {"city": "Oslo"}
        assert source.column("city").to_pylist() == FRAME["city"].tolist()
        with pytest.raises(InputError, match="no column is called 'town'; columns are text, label, city"):
            source.column("town")
        with pytest.raises(InputError, match="samples of kind text have no image"):
            source.picture(0, 64)
    else:
        assert source.picture(5, 64)[:2] == b"\xff\xd8"
        with pytest.raises(InputError, match="samples of kind images have no text"):
            source.text(0)
        with pytest.raises(InputError, match="has no column 'city'"):
            source.column("city")


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_rewritten_as_the_edit_says(name, tmp_path):
    path = make(name, tmp_path)
    source, samples = opened(path)
    is_kept = np.ones(12, bool)
    is_kept[[0, 5]] = False
    label_from = np.arange(12)
    moved = 2 if samples.labels[2] == 0 else 3  # a sample of class a, to class b
    label_from[moved] = int(np.flatnonzero(samples.labels == 1)[0])
    target = tmp_path / f"clean{path.suffix}"
    assert target in source.targets(target)
    source.rewrite(target, Edit(is_kept, label_from))
    cleaned = load(target)
    expected = samples.labels.copy()
    expected[moved] = 1
    contents = [one for one, kept in zip(list(samples.inputs), is_kept, strict=True) if kept]
    if source.has_files:  # a relabeled file moves, so the order changes
        assert sorted(map(np.ndarray.tobytes, cleaned.inputs)) == sorted(map(np.ndarray.tobytes, contents))
        assert np.bincount(cleaned.labels).tolist() == np.bincount(expected[is_kept]).tolist()
    else:
        np.testing.assert_array_equal(np.array(list(cleaned.inputs)), np.array(contents))
        assert cleaned.labels.tolist() == expected[is_kept].tolist()
    assert cleaned.found["format"] == name
    source.check(is_thorough=True)  # the original is as it was


@pytest.mark.parametrize("name", NAMES)
def test_every_format_becomes_a_hugging_face_data_set(name, tmp_path):
    source, samples = opened(make(name, tmp_path))
    rows = np.array([1, 4, 7])
    found = source.dataset(rows, samples.labels[rows], samples.class_names)
    assert len(found) == 3
    assert "label" in found.column_names


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_a_description_and_its_suffixes_are_in_the_docs(name):
    assert FORMATS[name].description
    page = (SRC.parent.parent / "docs" / "scan.md").read_text()
    assert all(f"`{suffix}`" in page for suffix in FORMATS[name].suffixes)


def test_no_other_room_asks_for_the_name_of_a_format():
    """Outside of sources/, nothing but the objects' methods is used."""
    words = "|".join(re.escape(name) for name in [*NAMES, "DataFrame"] if name not in ("JSON", "CSV", "Parquet"))
    compared = re.compile(rf"""(==|!=|in) \(?["']({words})["']|\.format (==|!=|in|not in)|found\[.format.\]""")
    for file in SRC.rglob("*.py"):
        if "sources" not in file.relative_to(SRC).parts:
            assert not compared.search(file.read_text()), file


def test_sources_of_version_01_are_understood(tmp_path):
    """As they stand in its config.json: without records of files, and with its names of formats."""
    for name in ("class folders", "CSV", "TSV", "JSON lines", "Parquet", "arrays", "Dataset"):
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        source, samples = opened(make(name, folder))
        old = {key: value for key, value in samples.found.items() if key not in ("files", "image_files")}
        again = reopen(old, samples.kind, source.ids, fingerprint=samples.fingerprint())
        again.check(is_thorough=True)
        assert again.is_there
    memory = reopen({"format": "Dataset", "label": "label"}, "text", ["0"])
    assert (memory.is_there, memory.path) == (False, None)


def test_a_format_of_no_known_name_cannot_be_shown_but_does_no_harm(tmp_path):
    source = reopen({"path": str(tmp_path), "format": "CIFAR python"}, "images", ["0"])
    assert not source.is_there
    with pytest.raises(InputError, match="scanned from memory"):
        source.picture(0, 64)


class Words(Source):
    """A format of another package: one sample per line, the first word is the label."""

    noun = "lines of words"

    @classmethod
    def load(cls, path, reading):
        lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
        names = sorted({label for label, _ in lines})
        labels = np.array([names.index(label) for label, _ in lines])
        return Samples("text", [text for _, text in lines], labels, names, None, {"path": str(path)})

    def _check(self, *, is_thorough):
        self.compare(lambda reading: self.load(self.place, reading))

    def text(self, index):
        self.check()
        return self.place.read_text().splitlines()[index].split(" ", 1)[1]


row = Format(Words, "lines of words", (".words",))


def test_a_package_adds_a_format_by_an_entry_point(tmp_path, monkeypatch):
    entry = EntryPoint("words", "tests.test_formats:row", "undermargin.sources")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == entry.group else [])
    table = Table("undermargin.sources", Format, dict(FORMATS))
    monkeypatch.setattr("undermargin.sources.source.FORMATS", table)
    (tmp_path / "d.words").write_text("good some fine words\nbad some other words\n" * 6)
    folder = make_scan(tmp_path / "d.words", tmp_path / "scan", flagged=[1])
    source = folder.originals(folder.verdicts())
    assert type(source).__name__ == "Words"
    assert source.text(1) == "some other words"
    (tmp_path / "d.words").write_text("bad some other words\ngood some fine words\n" * 6)
    with pytest.raises(InputError, match="has changed since the scan"):
        folder.originals(folder.verdicts()).text(1)


def test_a_parquet_folder_is_rewritten_file_by_file(tmp_path):
    (tmp_path / "parts").mkdir()
    for part in (0, 1):
        FRAME[6 * part : 6 * part + 6].to_parquet(tmp_path / "parts" / f"train-{part}.parquet", index=False)
    FRAME[:4].to_parquet(tmp_path / "parts" / "test-0.parquet", index=False)
    source, _ = opened(tmp_path / "parts", split="train")
    label_from = np.arange(12)
    label_from[10] = 1  # a label from the other file
    source.rewrite(tmp_path / "clean", Edit(np.arange(12) != 0, label_from))
    parts = [pd.read_parquet(tmp_path / "clean" / f"train-{part}.parquet") for part in (0, 1)]
    assert [len(part) for part in parts] == [5, 6]
    assert parts[1]["label"].tolist() == ["a", "b", "a", "b", "b", "b"]


@pytest.mark.parametrize("compression", [None, "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_a_parquet_file_keeps_its_compression(tmp_path, compression):
    FRAME.to_parquet(tmp_path / "d.parquet", compression=compression)
    source, _ = opened(tmp_path / "d.parquet")
    source.rewrite(tmp_path / "out.parquet", Edit(np.arange(12) > 0, np.arange(12)))
    before, after = (pq.read_metadata(tmp_path / name).row_group(0) for name in ("d.parquet", "out.parquet"))
    assert after.column(0).compression == before.column(0).compression


def test_a_csv_in_utf16_stays_in_utf16(tmp_path):
    text = "text,label\r\n" + "".join(f"schön Nummer {n} hier,{'ab'[n % 2]}\r\n" for n in range(12))
    (tmp_path / "d.csv").write_bytes(b"\xfe\xff" + text.encode("utf-16-be"))
    source, _ = opened(tmp_path / "d.csv")
    source.rewrite(tmp_path / "same.csv", Edit(np.ones(12, bool), np.arange(12)))
    assert (tmp_path / "same.csv").read_bytes() == (tmp_path / "d.csv").read_bytes()
    source.rewrite(tmp_path / "clean.csv", Edit(np.arange(12) > 0, np.arange(12)))
    assert load(tmp_path / "clean.csv").inputs[0] == "schön Nummer 1 hier"


def test_a_json_array_keeps_its_text(tmp_path):
    text = '[\n  {"label": "a", "text": "one two three"},\n  {"text": "\\u00e9 four", "label" :"b"} ,\n'
    text += '  {"label": "a", "text": "five six"}, {"label": "b", "text": "seven"}\n]\n'
    (tmp_path / "d.json").write_text(text)
    source, _ = opened(tmp_path / "d.json", text="text")
    source.rewrite(tmp_path / "out.json", Edit(np.array([False, True, True, True]), np.array([0, 1, 3, 3])))
    expected = '[\n  {"text": "\\u00e9 four", "label" :"b"} ,\n  {"label": "b", "text": "five six"}, '
    assert (tmp_path / "out.json").read_text() == expected + '{"label": "b", "text": "seven"}\n]\n'


def test_a_workbook_keeps_its_formats_and_other_sheets(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.styles import Font

    path = make("Excel", tmp_path)
    book = openpyxl.load_workbook(path)
    book.create_sheet("notes")["A1"] = "kept"
    book.worksheets[0]["A9"].font = Font(bold=True)  # the row of text number 7
    book.save(path)
    source, _ = opened(path)
    source.rewrite(tmp_path / "out.xlsx", Edit(np.arange(12) > 2, np.arange(12)))
    out = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert out["notes"]["A1"].value == "kept"
    sheet = out.worksheets[0]
    assert [row[0] for row in sheet.iter_rows(values_only=True)] == ["text", *FRAME["text"][3:]]
    assert sheet["A6"].font.bold
    assert not sheet["A9"].font.bold


def test_cells_of_a_workbook_are_numbers_dates_or_texts(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {
            "n": [1, 2, 4, 8] * 3,
            "large": [1e20, 1.5, None, 2] * 3,
            "when": pd.to_datetime(["2020-01-01 10:00", "2021-01-01 00:00"] * 6),
            "mixed": [1, "one"] * 6,
            "label": ["a", "b"] * 6,
        }
    )
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    columns = load(tmp_path / "d.xlsx").inputs
    assert columns.number_names == ["n", "large", "when"]
    assert columns.categories == {"mixed": ["1", "one"]}
    assert columns.numbers[0, 2] == np.float32(1577872800)


def test_how_data_were_read_is_remembered(tmp_path):
    frame = FRAME.assign(key=[f"k{n}" for n in range(12)], split=["x", "y"] * 6, label=["a", "a", "b", "b"] * 3)
    frame.to_csv(tmp_path / "d.csv", index=False)
    samples = load(tmp_path / "d.csv", Reading(label="label", text="text", where="split=x", id="key"))
    again = Reading.of(samples.found)
    assert replace(again, on_read=None) == replace(
        Reading(label="label", text="text", where="split=x", id="key"), on_read=None
    )
    assert load(tmp_path / "d.csv", again).fingerprint() == samples.fingerprint()
    assert samples.ids == [f"k{n}" for n in range(0, 12, 2)]
