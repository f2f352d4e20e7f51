"""Ordinary data that used to end in a traceback, and damaged or hostile data that used to end worse."""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from undermargin.errors import InputError
from undermargin.sources.labels import encode_labels
from undermargin.sources.pictures import decode
from undermargin.sources.samples import Reading
from undermargin.sources.source import load

YES_NO = ["yes", "no"] * 4


def numbers(table, name):
    samples = load(table)
    return samples.inputs.numbers[:, samples.inputs.number_names.index(name)]


@pytest.mark.parametrize(
    ("values", "kind", "seconds"),
    [
        ([datetime(1970, 1, 1, 0, 0, 1, 500_000), None], pa.timestamp("us"), 1.5),
        ([datetime(1970, 1, 1, 0, 0, 1, 250_000), None], pa.timestamp("ns", "UTC"), 1.25),
        ([datetime(1969, 12, 31, 23, 59, 59, 750_000), None], pa.timestamp("ms"), -0.25),
        ([time(0, 1, 2, 500_000), None], pa.time64("us"), 62.5),
        ([time(1, 0, 0), None], pa.time32("s"), 3600),
        ([time(0, 0, 0, 125_000), None], pa.time32("ms"), 0.125),
        ([timedelta(days=1, milliseconds=500), None], pa.duration("ms"), 86400.5),
        ([date(1970, 1, 3), None], pa.date32(), 172800),
        ([date(1970, 1, 3), None], pa.date64(), 172800),
    ],
)
def test_dates_times_and_durations_are_seconds(values, kind, seconds):
    table = pa.table({"when": pa.array(values * 4, kind), "label": YES_NO})
    found = numbers(table, "when")
    assert found[0] == seconds
    assert np.isnan(found[1])


def test_nanoseconds_keep_whole_seconds_exact():
    """As whole numbers they exceed what a float holds exactly."""
    from undermargin.sources.columns import _seconds

    stamps = pa.chunked_array([pa.array([1_700_000_001_000_000_001, 1_700_000_002_000_000_000], pa.timestamp("ns"))])
    assert [value // 1 for value in _seconds(stamps).to_pylist()] == [1_700_000_001, 1_700_000_002]


@pytest.mark.parametrize(
    "ids",
    [pa.nulls(8), pa.array([[1], [2]] * 4), pa.array([{"a": 1}] * 8), pa.array([None] * 8, pa.string())],
    ids=["empty", "lists", "objects", "no texts"],
)
def test_an_id_column_that_names_nothing_is_passed_over(ids):
    samples = load(pa.table({"id": ids, "x": [0.5, 1.5] * 4, "label": YES_NO}))
    assert samples.ids is None
    assert samples.inputs.number_names == ["x"]


def write_lines(path, rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("large", [2**63, 2**64, -(2**70), 10**75])
def test_whole_numbers_beyond_64_bits_stay_exact(tmp_path, large):
    rows = [{"id": large + n, "x": large * (n % 3), "label": YES_NO[n]} for n in range(8)]
    samples = load(write_lines(tmp_path / "d.jsonl", rows))
    assert samples.ids[1] == str(large + 1)
    assert samples.inputs.number_names == ["x"]
    expected = float(large) if abs(large) < 3e38 else np.nan  # beyond 32 bits: counts as missing
    np.testing.assert_allclose(samples.inputs.numbers[1, 0], expected, rtol=1e-6)


def test_numbers_of_any_length_and_in_lists_are_read(tmp_path):
    rows = [{"n": 10**100 + n, "more": [2**70, 1.5], "x": n % 3, "label": YES_NO[n]} for n in range(8)]
    assert load(write_lines(tmp_path / "d.jsonl", rows)).inputs.number_names == ["x"]


def test_labels_beyond_64_bits_are_classes(tmp_path):
    rows = [{"x": n % 3, "label": 2**64 + n % 2} for n in range(8)]
    assert load(write_lines(tmp_path / "d.jsonl", rows)).class_names == [str(2**64), str(2**64 + 1)]


@pytest.mark.parametrize("depth", [70, 900, 5000, 100_000])
@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_deep_nesting_is_one_line(tmp_path, depth, suffix):
    row = '{"x": 1, "label": "yes", "deep": ' + "[" * depth + "]" * depth + "}"
    text = row if suffix == ".jsonl" else f"[{row}]"
    (tmp_path / f"d{suffix}").write_text(text)
    with pytest.raises(InputError, match="cannot be read as JSON.*nested") as caught:
        load(tmp_path / f"d{suffix}")
    assert "\n" not in str(caught.value)


def test_moderate_nesting_is_read(tmp_path):
    rows = [{"x": n % 3, "label": YES_NO[n], "deep": [[[{"a": [n]}]]]} for n in range(8)]
    assert load(write_lines(tmp_path / "d.jsonl", rows)).kind == "table"


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), 1e300])
def test_infinite_cells_count_as_missing_and_are_reported(value):
    frame = pd.DataFrame({"a": [1.0, value, 3.0, 4.0] * 2, "b": [1.0, None] * 4, "label": YES_NO})
    samples = load(frame)
    assert np.isnan(samples.inputs.numbers[1, 0])
    assert samples.found["non_finite_cells"] == {"a": 2}
    assert "non_finite_cells" not in load(frame.drop(columns="a")).found


def test_the_fingerprint_of_data_with_infinite_cells_is_that_of_version_01():
    frame = pd.DataFrame({"a": [1.0, float("inf"), -float("inf"), 4.0] * 2, "label": YES_NO})
    assert load(frame).fingerprint() == "7c3e68c502ad355a"


def test_a_frame_that_arrow_cannot_hold_is_one_line():
    with pytest.raises(InputError, match="the DataFrame cannot be read as a table"):
        load(pd.DataFrame({"x": [1, "a", {}, 2] * 2, "label": YES_NO}))
    with pytest.raises(InputError, match="the DataFrame cannot be read as a table: Duplicate"):
        load(pd.DataFrame([[1, 2, 3]] * 4, columns=["x", "x", "label"]))


def test_two_columns_of_one_name_are_refused(tmp_path):
    pq.write_table(pa.table([[1, 2] * 4, [1, 2] * 4, YES_NO], names=["x", "x", "label"]), tmp_path / "d.parquet")
    with pytest.raises(InputError, match="two columns have the same name, 'x'"):
        load(tmp_path / "d.parquet")


def test_texts_that_are_not_utf8_are_refused(tmp_path):
    broken = pa.StringArray.from_buffers(8, pa.py_buffer(np.arange(9, dtype=np.int32)), pa.py_buffer(b"\xff" * 8))
    pq.write_table(pa.table({"text": broken, "label": YES_NO}), tmp_path / "d.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet: .*UTF8"):
        load(tmp_path / "d.parquet")


def bomb(width, height):
    """A PNG of very many white pixels in few bytes."""
    import struct
    import zlib

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    line = b"\0" + b"\xff" * ((width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def photos(root, count=6):
    for name, color in (("cat", (200, 30, 30)), ("dog", (30, 30, 200))):
        (root / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (40, 30), color).save(root / name / f"{number}.png")
    return root


@pytest.mark.parametrize("side", [13_300, 50_000])
def test_an_oversized_picture_is_skipped_with_a_reason(tmp_path, side):
    root = photos(tmp_path / "photos")
    (root / "cat" / "0.png").write_bytes(bomb(side, side))
    samples = load(root)
    assert len(samples) == 11
    ((name, reason),) = samples.skipped
    assert name == "cat/0.png"
    assert f"{side:,} x {side:,} pixels; images of more than 89,478,485 pixels" in reason


def test_oversized_pictures_take_little_memory(tmp_path):
    root = photos(tmp_path / "photos", count=10)
    for number in range(4):
        (root / "cat" / f"{number}.png").write_bytes(bomb(13_300, 13_300))
    code = f"""
import resource
from undermargin.sources.source import load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(load({str(root)!r}).skipped) == 4
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert int(done.stdout) < 200, done.stderr  # megabytes


def test_a_large_photo_is_decoded_at_a_fraction_of_its_size():
    data = io.BytesIO()
    wide = Image.new("L", (12_000, 8_000), 60)
    wide.paste(200, (6_000, 0, 12_000, 8_000))
    wide.save(data, "JPEG", quality=30)
    pixels = decode(data.getvalue(), 32)
    assert abs(int(pixels[16, 4, 0]) - 60) < 5
    assert abs(int(pixels[16, 28, 0]) - 200) < 5


def test_a_large_progressive_photo_is_refused():
    data = io.BytesIO()
    Image.new("L", (12_000, 8_000), 60).save(data, "JPEG", quality=10, progressive=True)
    with pytest.raises(InputError, match="12,000 x 8,000 pixels"):
        decode(data.getvalue(), 32)


def test_a_picture_that_is_a_program_is_not_opened():
    with pytest.raises(InputError, match="not an image"):
        decode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n", 32)


@pytest.fixture
def saved(tmp_path):
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "n": datasets.Value("int64"),
        }
    )
    data = {"text": [f"words of row {n}" for n in range(200)], "label": [0, 1] * 100, "n": list(range(200))}
    datasets.Dataset.from_dict(data, features=features).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def test_a_saved_data_set_is_read_as_its_library_reads_it(saved):
    from undermargin.sources.huggingface import HuggingFaceFolder

    theirs = datasets.load_from_disk(saved).with_format("arrow")[:]
    assert HuggingFaceFolder.readable(saved).equals(theirs, check_metadata=True)


def test_a_damaged_hugging_face_folder_is_one_line_and_never_ends_the_process(saved):
    """In a process of its own: reading out of bounds would end it."""
    code = f"""
import numpy as np
from pathlib import Path
from undermargin.errors import InputError
from undermargin.sources.source import load
rng, path = np.random.default_rng(0), next(Path({str(saved)!r}).glob("*.arrow"))
whole = path.read_bytes()
refused = 0
for number in range(300):
    data = bytearray(whole)
    if number % 3 == 0:
        data = data[: int(rng.integers(0, len(data)))]
    else:
        for _ in range(8):
            at = int(rng.integers(0, len(data) - 8))
            data[at : at + 8] = rng.bytes(8) if number % 3 == 1 else (2**40).to_bytes(8, "little")
    path.write_bytes(data)
    try:
        samples = load({str(saved)!r})
        samples.fingerprint()
    except InputError as error:
        assert "\\n" not in str(error), error
        refused += 1
print(refused)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) > 100


@pytest.mark.parametrize("name", ["dataset_info.json", "state.json"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'"\xff"', b"[" * 9999, b'{"_data_files": [{"filename": "../x"}], "features": 3}'],
)
def test_damaged_notes_in_a_hugging_face_folder_are_one_line(saved, name, content):
    (saved / name).write_bytes(content)
    message = ""
    try:
        load(saved)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_splits_are_not_taken_for_classes(tmp_path):
    for split in ("train", "val"):
        photos(tmp_path / "photos" / split)
    with pytest.raises(InputError, match="photos holds 2 splits: train, val; pass --split train"):
        load(tmp_path / "photos")
    samples = load(tmp_path / "photos", Reading(split="val"))
    assert (len(samples), samples.class_names) == (12, ["cat", "dog"])
    assert samples.found["path"] == str(tmp_path / "photos" / "val")
    with pytest.raises(InputError, match="has no split 'dev'; splits are train, val"):
        load(tmp_path / "photos", Reading(split="dev"))


def test_the_only_split_is_taken_and_it_is_said_so(tmp_path):
    photos(tmp_path / "photos" / "train")
    assert load(tmp_path / "photos").found["guessed"] == ["split: train"]


def test_classes_that_are_called_like_splits_stay_classes(tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        for number in range(4):
            Image.new("RGB", (32, 32)).save(tmp_path / name / f"{number}.png")
    assert load(tmp_path).class_names == ["test", "train"]


def test_a_split_of_a_hugging_face_folder_and_of_parquet_files(tmp_path):
    data = datasets.Dataset.from_dict({"text": ["some words here"] * 8, "label": YES_NO})
    datasets.DatasetDict({"train": data, "test": data.select(range(4))}).save_to_disk(tmp_path / "both")
    assert len(load(tmp_path / "both", Reading(split="test"))) == 4
    in_memory = datasets.DatasetDict({"train": data, "test": data.select(range(4))})
    assert len(load(in_memory, Reading(split="test"))) == 4
    (tmp_path / "files").mkdir()
    frame = pd.DataFrame({"text": [f"row number {n}" for n in range(8)], "label": YES_NO})
    for name, rows in (("train-00000-of-00002", frame[:4]), ("train-00001-of-00002", frame[4:]), ("test-0", frame[:4])):
        rows.to_parquet(tmp_path / "files" / f"{name}.parquet")
    with pytest.raises(InputError, match="holds 2 splits: test, train; pass --split train"):
        load(tmp_path / "files")
    samples = load(tmp_path / "files", Reading(split="train"))
    assert samples.inputs == frame["text"].tolist()
    assert samples.found["split"] == "train"


def test_a_folder_of_parquet_files_is_one_table_if_their_columns_agree(tmp_path):
    frame = pd.DataFrame({"text": [f"row number {n}" for n in range(8)], "label": YES_NO})
    for part in (0, 1):
        frame[4 * part : 4 * part + 4].to_parquet(tmp_path / f"part-{part}.parquet")
    assert load(tmp_path).inputs == frame["text"].tolist()
    pd.DataFrame({"other": [1]}).to_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(InputError, match="part-2.parquet has other columns than part-0.parquet"):
        load(tmp_path)


def test_a_split_of_a_single_file_is_refused(tmp_path):
    pd.DataFrame({"text": ["some words here"] * 8, "label": YES_NO}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(InputError, match="has no splits, so --split train has no meaning; .* --where COLUMN=train"):
        load(tmp_path / "d.csv", Reading(split="train"))


def test_strings_of_several_labels_are_refused():
    rng = np.random.default_rng(0)
    genres = ["action", "comedy", "drama", "horror", "love", "war", "west"]
    values = ["|".join(sorted(rng.choice(genres, rng.integers(1, 4), replace=False))) for _ in range(400)]
    with pytest.raises(InputError, match=r"several labels per sample, separated by '\|', .* combinations of 7 labels"):
        encode_labels(values)


@pytest.mark.parametrize(
    "names",
    [
        ["Food|Soup", "Food|Cake", "Toys|Ball"],  # a hierarchy
        ["Paris, France", "Oslo, Norway", "Rome, Italy"],
        ["yes", "no", "yes|no"],  # one class for both
        ["C;", "C++;", "Go"],
    ],
)
def test_single_labels_with_a_separator_in_them_are_classes(names):
    assert encode_labels(names * 4)[1] == sorted(names)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le-bom", "utf-16-be-bom"])
def test_a_csv_in_utf16_is_read(tmp_path, encoding):
    text = "text,label\n" + "schön und gut genug,a\nso là là und weiter,b\n" * 4
    name = encoding.removesuffix("-bom")
    data = text.encode(name)
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(name, b"")
    (tmp_path / "d.csv").write_bytes(mark + data)
    assert load(tmp_path / "d.csv").inputs[1] == "so là là und weiter"


def test_a_csv_in_utf16_without_a_mark_says_what_it_may_be(tmp_path):
    (tmp_path / "d.csv").write_bytes(("text,label\n" + "some words,a\nmore words,b\n" * 4).encode("utf-16-le"))
    with pytest.raises(InputError, match="cannot be read as CSV: it holds null bytes; if it is UTF-16"):
        load(tmp_path / "d.csv")


def packed(path, name, array_bytes, **more):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{name}.npy", array_bytes)
        for other, array in more.items():
            data = io.BytesIO()
            np.save(data, array)
            file.writestr(f"{other}.npy", data.getvalue())


def header(shape):
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return data.getvalue()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_header_that_claims_73_tebibytes_is_one_line(tmp_path, suffix):
    claims = header((10**13,)) + b"\0" * 80
    if suffix == ".npz":
        packed(tmp_path / "d.npz", "x", claims, y=np.array([0, 1] * 4))
    else:
        (tmp_path / "d.npy").write_bytes(claims)
        np.save(tmp_path / "d_labels.npy", [0, 1] * 4)
    with pytest.raises(InputError, match="claims 80,000,000,000,000 bytes .* but 80 follow"):
        load(tmp_path / f"d{suffix}")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    side = 20_000
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("x.npy", "w", force_zip64=True) as member:
            member.write(header((side, side // 2)))
            block = bytes(8 * side)
            for _ in range(side // 2):
                member.write(block)
        data = io.BytesIO()
        np.save(data, np.arange(side) % 2)
        file.writestr("y.npy", data.getvalue())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="would unpack to 1,600,000,128; archives that grow more than 100-fold"):
        load(tmp_path / "d.npz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_arrays_beyond_the_allowed_memory_are_refused(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((8, 1000)), y=[0, 1] * 4)
    with pytest.raises(InputError, match="takes 64,128 bytes in memory, but only 10,000 are allowed; pass --memory GB"):
        load(tmp_path / "d.npz", Reading(memory=10_000))


def test_a_pipe_among_the_pictures_does_not_hang(tmp_path):
    root = photos(tmp_path / "photos")
    os.mkfifo(root / "cat" / "pipe.png")
    assert len(load(root)) == 12
    pd.DataFrame({"image": ["cat/0.png", "cat/pipe.png", *["dog/0.png"] * 8], "label": [*"ab"] * 5}).to_csv(
        root / "d.csv", index=False
    )
    assert load(root / "d.csv").skipped == [("1", "the image cat/pipe.png is not a file")]


@pytest.mark.parametrize("name", ["a\0b.png", "x" * 5000 + ".png", "../../etc/hostname.png"])
def test_impossible_file_names_in_a_column_are_skipped(tmp_path, name):
    root = photos(tmp_path / "photos")
    pq.write_table(
        pa.table({"image": ["cat/0.png", name, *["dog/0.png"] * 8], "label": [*"ab"] * 5}), root / "d.parquet"
    )
    assert [row for row, _ in load(root / "d.parquet").skipped] == ["1"]


def test_decimals_are_numbers():
    table = pa.table({"x": pa.array([Decimal("1.5"), None] * 4), "label": YES_NO})
    assert numbers(table, "x")[0] == 1.5
