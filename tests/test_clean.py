"""Cleaned data in the format they came in: what changed is what was asked for, and nothing else."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.scan_folders import make_scan
from undermargin.errors import FolderError, InputError
from undermargin.scans.cleaning import Cleaning
from undermargin.scans.decisions import Change, Decision
from undermargin.sources.base import Edit
from undermargin.sources.delimited import write_delimited
from undermargin.sources.json_lines import write_json_lines


def decide(folder, **actions):
    """s3=("relabel", "b"): by index."""
    log = folder.decisions()
    log.decide([Change(int(name[1:]), Decision(*action)) for name, action in actions.items()], who="anna")
    log.close()


def clean(folder, target, **options):
    cleaning = Cleaning.of(folder.path, **options)
    return json.loads(cleaning.write(target).read_text())


CSV = (
    b"\xef\xbb\xbfid,label,text,n\r\n"
    b'0,"a","one, ""two""",1.0\r\n'
    b"1,b,three four five,01\r\n"
    b"\r\n"
    b'2,a,"a line\nand another",1e0\r\n'
    b"3,b,  spaces stay here  ,\r\n"
    b"4,a,gr\xc3\xbc\xc3\x9fe an alle,7\r\n"
    b"5,b,no line end here,7"
)


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "d.csv").write_bytes(CSV)
    return make_scan(tmp_path / "d.csv", tmp_path / "scan", flagged=[1, 2], text="text")


def test_a_csv_keeps_every_byte_that_was_not_asked_to_change(rows, tmp_path):
    decide(rows, s0=("keep",), s2=("keep",), s3=("relabel", "a"), s4=("drop", None, "blurred"))
    manifest = clean(rows, tmp_path / "out.csv")
    lines = CSV.split(b"\r\n")
    expected = [lines[0], lines[1], b"", lines[4], b'3,"a",  spaces stay here  ,', lines[7]]
    assert (tmp_path / "out.csv").read_bytes() == b"\r\n".join(expected)
    assert (tmp_path / "d.csv").read_bytes() == CSV
    assert [
        (row["index"], row["action"], row["label"], row["new_label"], row["why"]) for row in manifest["changes"]
    ] == [
        (1, "drop", "b", None, "verdict: flagged"),
        (3, "relabel", "b", "a", "decision of anna"),
        (4, "drop", "a", None, "decision of anna: blurred"),
    ]
    assert manifest["changes"][0]["score"] == -2


@pytest.mark.parametrize(("flagged", "labels"), [("drop", "abab"), ("relabel", "aabbab"), ("keep", "ababab")])
def test_verdicts_alone(rows, tmp_path, flagged, labels):
    clean(rows, tmp_path / "out.csv", flagged=flagged)
    found = pd.read_csv(tmp_path / "out.csv")["label"]
    assert "".join(found) == labels


def test_rows_outside_the_scanned_part_stay(tmp_path):
    frame = pd.DataFrame(
        {"split": ["test", "train"] * 6, "text": ["some few words"] * 12, "label": ["a", "a", "b", "b"] * 3}
    )
    frame.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    folder = make_scan(tmp_path / "d.tsv", tmp_path / "scan", flagged=[0, 1], where="split=train")
    clean(folder, tmp_path / "out.tsv")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "out.tsv", sep="\t"), frame.drop([1, 3]).reset_index(drop=True)
    )


cells = st.text(st.sampled_from('ab,"\r\n \t;é'), max_size=6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(cells, cells), min_size=1, max_size=8),
    st.sampled_from([("\r\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_ALL), ("\n", csv.QUOTE_ALL)]),
    st.data(),
)
def test_any_csv_that_python_writes_comes_back_as_pythons_reader_says(tmp_path_factory, given_rows, style, data):
    folder = tmp_path_factory.mktemp("csv")
    table = [[str(number), "xyz"[number % 3], *row] for number, row in enumerate(given_rows)]
    text = io.StringIO()
    ending, quoting = style
    csv.writer(text, lineterminator=ending, quoting=quoting).writerows([["id", "label", "one", "two"], *table])
    (folder / "d.csv").write_bytes(text.getvalue().encode())
    kept = data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
    source = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=len(table), max_size=len(table)))
    write_delimited(folder / "d.csv", folder / "out.csv", Edit(np.array(kept), np.array(source)), "label")
    expected = [[row[0], table[source[number]][1], *row[2:]] for number, row in enumerate(table) if kept[number]]
    with (folder / "out.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file))[1:] == expected
    everything = Edit(np.ones(len(table), bool), np.arange(len(table)))
    write_delimited(folder / "d.csv", folder / "same.csv", everything, "label")
    assert (folder / "same.csv").read_bytes() == (folder / "d.csv").read_bytes()


def test_json_lines_keep_every_byte_but_the_label(tmp_path):
    lines = [
        b'{"label" : 1, "text": "one {\\"label\\": 2} two three", "n": 1.50}',
        b'{"text":"vier f\xc3\xbcnf sechs","label":2,"more":{"label":[1]}}',
        b"",
        b'  {"n": null, "label":\t1, "text": "\\u00e9 eight nine"}  ',
        b'{"label": 9, "text": "said twice here", "label": 2}',
    ]
    (tmp_path / "d.jsonl").write_bytes(b"\n".join(lines))
    folder = make_scan(tmp_path / "d.jsonl", tmp_path / "scan", flagged=[0])
    decide(folder, s1=("relabel", "1"), s3=("relabel", "1"))
    clean(folder, tmp_path / "out.jsonl")
    lines[1] = lines[1].replace(b'"label":2', b'"label":1')
    lines[4] = lines[4].replace(b'"label": 2', b'"label": 1')
    assert (tmp_path / "out.jsonl").read_bytes() == b"\n".join(lines[1:])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=4), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4), max_size=4
        ),
        min_size=2,
        max_size=5,
    ),
    st.booleans(),
)
def test_any_json_lines(tmp_path_factory, objects, is_ascii):
    folder = tmp_path_factory.mktemp("json")
    objects = [one | {"label": number % 2} for number, one in enumerate(objects)]
    (folder / "d.jsonl").write_text(
        "".join(json.dumps(one, ensure_ascii=is_ascii) + "\n" for one in objects), newline="\n"
    )
    size = len(objects)
    write_json_lines(folder / "d.jsonl", folder / "out.jsonl", Edit(np.arange(size) > 0, np.full(size, 1)), "label")
    found = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().decode().split("\n") if line]
    assert found == [one | {"label": 1} for one in objects[1:]]


def test_parquet_keeps_schema_metadata_compression_and_row_groups(tmp_path):
    schema = pa.schema(
        [
            pa.field("label", pa.dictionary(pa.int8(), pa.string()), metadata={"who": "me"}),
            pa.field("n", pa.int16(), nullable=False),
            pa.field("nested", pa.struct([("x", pa.float32())])),
        ],
        metadata={"about": "this set"},
    )
    labels = pa.array(["a", "b"] * 6).dictionary_encode().cast(schema.field(0).type)
    table = pa.table(
        [
            labels,
            pa.array([5 * n for n in range(12)], pa.int16()),
            pa.array([{"x": 1.5}, None] * 6, schema.field(2).type),
        ],
        schema=schema,
    )
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=5, compression="zstd")
    folder = make_scan(tmp_path / "d.parquet", tmp_path / "scan", flagged=[2, 7])
    decide(folder, s7=("relabel", "a"))
    clean(folder, tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.equals(pq.read_schema(tmp_path / "d.parquet"), check_metadata=True)
    assert found["n"].to_pylist() == [5 * n for n in range(12) if n != 2]
    assert found["label"].to_pylist() == ["a" if n == 7 else "ab"[n % 2] for n in range(12) if n != 2]
    assert found["nested"].to_pylist() == [{"x": 1.5} if n % 2 == 0 else None for n in range(12) if n != 2]
    about = pq.read_metadata(tmp_path / "out.parquet")
    assert [about.row_group(number).num_rows for number in range(about.num_row_groups)] == [4, 5, 2]
    assert about.row_group(0).column(0).compression == "ZSTD"


def test_a_datasets_folder_keeps_its_class_label(tmp_path):
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
            "n": datasets.Value("int8"),
        }
    )
    data = {"text": [f"words number {n}" for n in range(8)], "label": [0, 1] * 4, "n": list(range(8))}
    datasets.Dataset.from_dict(data, features=features).save_to_disk(tmp_path / "d")
    before = sorted(path.name for path in (tmp_path / "d").iterdir())
    folder = make_scan(tmp_path / "d", tmp_path / "scan", flagged=[0])
    decide(folder, s3=("relabel", "neg"))
    clean(folder, tmp_path / "out")
    found = datasets.load_from_disk(tmp_path / "out")
    assert found.features == features
    assert found.column_names == ["text", "label", "n"]
    assert found["label"][:] == [1, 0, 0, 0, 1, 0, 1]
    assert found["n"][:] == list(range(1, 8))
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == before


def test_an_archive_of_arrays_keeps_its_other_members(tmp_path):
    x = np.arange(24, dtype=np.float64).reshape(8, 3)
    np.savez_compressed(
        tmp_path / "d.npz",
        x=x,
        y=np.array([0, 1] * 4, np.int16),
        weight=np.arange(8),
        classes=["no", "yes"],
        mean=np.float32(3),
    )
    folder = make_scan(tmp_path / "d.npz", tmp_path / "scan", flagged=[1])
    decide(folder, s2=("relabel", "yes"))
    clean(folder, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        kept = [0, 2, 3, 4, 5, 6, 7]
        np.testing.assert_array_equal(found["x"], x[kept])
        assert found["y"].tolist() == [0, 1, 1, 0, 1, 0, 1]
        assert found["y"].dtype == np.int16
        assert found["weight"].tolist() == kept
        assert found["classes"].tolist() == ["no", "yes"]
        assert found["mean"] == 3


def test_an_array_with_its_labels_beside_it(tmp_path):
    np.save(tmp_path / "d.npy", np.eye(6))
    np.save(tmp_path / "d_labels.npy", np.array(list("ababab")))
    folder = make_scan(tmp_path / "d.npy", tmp_path / "scan", flagged=[5])
    clean(folder, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.eye(6)[:5])
    assert np.load(tmp_path / "out_labels.npy").tolist() == list("ababa")


@pytest.fixture
def photos(tmp_path):
    for number, name in enumerate(["cat/0.png", "cat/1.png", "cat/sub/2.png", "dog/0.png", "dog/3.png", "dog/4.png"]):
        file = tmp_path / "photos" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 9), (number * 40, 0, 0)).save(file)
    (tmp_path / "photos/cat/broken.png").write_bytes(b"no image")
    (tmp_path / "photos/cat/notes.txt").write_text("by the river")
    (tmp_path / "photos/README").write_text("photos")
    return make_scan(tmp_path / "photos", tmp_path / "photos-scan", flagged=[1])


def tree(path):
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_class_folders_are_copied_and_relabeled_images_move(photos, tmp_path):
    decide(photos, s0=("relabel", "dog"), s2=("relabel", "dog"), s5=("drop",))
    before = tree(tmp_path / "photos")
    manifest = clean(photos, tmp_path / "out")
    assert tree(tmp_path / "photos") == before
    moves = {"cat/0.png": "dog/0-from-cat.png", "cat/sub/2.png": "dog/sub/2.png"}
    gone = ("cat/1.png", "dog/4.png")
    assert tree(tmp_path / "out") == {moves.get(name, name): data for name, data in before.items() if name not in gone}
    assert (tmp_path / "out/cat/sub").is_dir()
    assert {row["id"]: row.get("new_id") for row in manifest["changes"]} == moves | dict.fromkeys(gone)
    assert manifest["skipped"] == [{"id": "cat/broken.png", "reason": "not an image"}]
    assert manifest["shrinking"] == ["cat"]
    assert not (tmp_path / "out/dog/3.png").samefile(tmp_path / "photos/dog/3.png")


def test_images_are_linked_only_on_demand(photos, tmp_path):
    Cleaning.of(photos.path).write(tmp_path / "out", is_linked=True)
    assert (tmp_path / "out/dog/3.png").samefile(tmp_path / "photos/dog/3.png")


def test_the_classes_add_up(photos):
    decide(photos, s0=("relabel", "dog"), s5=("drop",))
    found = Cleaning.of(photos.path).summary()
    assert [tuple(row.values()) for row in found["classes"]] == [("cat", 3, 1, 1, 0, 1), ("dog", 3, 1, 0, 1, 3)]
    assert (found["num_before"], found["num_dropped"], found["num_relabeled"], found["num_after"]) == (6, 2, 1, 4)


def test_nothing_is_overwritten_and_nothing_goes_into_the_data_itself(photos, rows, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="already exists"):
        clean(photos, tmp_path / "there")
    with pytest.raises(InputError, match="inside the data"):
        clean(photos, tmp_path / "photos" / "clean")
    with pytest.raises(InputError, match="the same format; name it out.csv"):
        clean(rows, tmp_path / "out")


@pytest.fixture
def rows_elsewhere(tmp_path):
    (tmp_path / "e.csv").write_bytes(CSV)
    return make_scan(tmp_path / "e.csv", tmp_path / "elsewhere", flagged=[1], text="text")


def test_data_that_changed_since_the_scan_are_refused(rows_elsewhere, photos, tmp_path):
    (tmp_path / "e.csv").write_bytes(CSV.replace(b"three four", b"other words"))
    with pytest.raises(InputError, match="has changed since the scan"):
        clean(rows_elsewhere, tmp_path / "out.csv")
    (tmp_path / "photos/dog/3.png").unlink()
    with pytest.raises(InputError, match="1 images of the scan are gone, the first is dog/3.png"):
        clean(photos, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_data_that_were_moved_are_named(rows_elsewhere, tmp_path):
    (tmp_path / "e.csv").rename(tmp_path / "moved.csv")
    with pytest.raises(InputError, match="say where they are with --data"):
        clean(rows_elsewhere, tmp_path / "out.csv")
    clean(rows_elsewhere, tmp_path / "out.csv", data=tmp_path / "moved.csv")
    assert (tmp_path / "out.csv").is_file()


def test_a_list_of_indices_for_data_in_memory(tmp_path):
    folder = make_scan((np.eye(6), list("ababab")), tmp_path / "scan", flagged=[1, 2])
    decide(folder, s2=("relabel", "b"))
    Cleaning.of(folder.path).write_indices(tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_text().splitlines() == [
        "index,id,label",
        "0,0,a",
        "2,2,b",
        "3,3,b",
        "4,4,a",
        "5,5,b",
    ]


def test_no_cell_of_a_list_of_indices_is_run_by_a_spreadsheet(tmp_path):
    frame = pd.DataFrame({"id": [f"=cmd|{n}" for n in range(6)], "x": [1.5, 2.5] * 3, "label": ["@a", "b"] * 3})
    folder = make_scan(frame, tmp_path / "scan", flagged=[1])
    Cleaning.of(folder.path).write_indices(tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_text().splitlines()[1] == "0,'=cmd|0,'@a"


def test_unreadable_images_are_listed_by_their_own_names(tmp_path):
    """Whatever a spreadsheet would make of them."""
    for number in range(8):
        file = tmp_path / "photos" / "=a+b"[number % 2 :: 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 9)).save(file)
    (tmp_path / "photos" / "=+" / "broken.png").write_bytes(b"no image")
    folder = make_scan(tmp_path / "photos", tmp_path / "scan", flagged=[1])
    manifest = clean(folder, tmp_path / "out")
    assert manifest["skipped"] == [{"id": "=+/broken.png", "reason": "not an image"}]


def test_a_file_that_is_called_like_the_manifest_is_not_overwritten(rows, tmp_path):
    (tmp_path / "out.csv.manifest.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="out.csv.manifest.json already exists"):
        clean(rows, tmp_path / "out.csv")
    assert (tmp_path / "out.csv.manifest.json").read_text() == '{"mine": 1}'
    assert not (tmp_path / "out.csv").exists()


def test_a_kill_leaves_nothing_half_made(photos, tmp_path):
    code = f"""
import os, shutil, signal
from undermargin.scans.cleaning import Cleaning
copy, copied = shutil.copy2, []
def dying(source, target):
    copied.append(copy(source, target))
    if len(copied) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
shutil.copy2 = dying
Cleaning.of({str(photos.path)!r}).write({str(tmp_path / "out")!r})
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == -9
    assert not (tmp_path / "out").exists()
    clean(photos, tmp_path / "out")
    assert not list(tmp_path.glob("*.part"))
    assert "dog/3.png" in tree(tmp_path / "out")


def test_a_class_name_cannot_lead_out_of_the_copy(photos, tmp_path):
    """A folder from someone else may call a class whatever it likes."""
    verdicts = photos.verdicts()
    names = ["cat", "../../evil"]
    photos.save_verdicts(replace(verdicts, class_names=names))
    decide(photos, s0=("relabel", "../../evil"))
    clean(photos, tmp_path / "out")
    assert (tmp_path / "out/dog/0-from-cat.png").is_file()


def test_the_command_says_what_it_did(photos, tmp_path):
    words = [sys.executable, "-m", "undermargin", "clean", str(photos.path)]
    dry = subprocess.run([*words, "--dry-run", "--json"], capture_output=True, text=True, timeout=300)
    assert json.loads(dry.stdout)["num_after"] == 5
    assert subprocess.run(words, capture_output=True, timeout=300).returncode == 2
    done = subprocess.run([*words, "--to", str(tmp_path / "out")], capture_output=True, text=True, timeout=300)
    assert "5 of 6 samples stay" in done.stdout


def test_a_csv_with_semicolons_is_cleaned_with_semicolons(tmp_path):
    (tmp_path / "d.csv").write_text("label;n\na;0,5\nb;1,5\na;2,5\nb;4,5\n")
    folder = make_scan(tmp_path / "d.csv", tmp_path / "scan", flagged=[1, 2])
    decide(folder, s2=("relabel", "b"))
    clean(folder, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "label;n\na;0,5\nb;2,5\nb;4,5\n"


def test_flagged_samples_that_look_like_no_other_class_are_dropped_and_counted(rows, tmp_path):
    verdicts = rows.verdicts()
    suggested = verdicts.suggested_labels.copy()
    suggested[1] = -1
    rows.save_verdicts(replace(verdicts, suggested_labels=suggested))
    manifest = clean(rows, tmp_path / "out.csv", flagged="relabel")
    assert manifest["num_without_suggestion"] == 1
    assert [(row["index"], row["action"], row["why"]) for row in manifest["changes"]] == [
        (1, "drop", "verdict: flagged, and no other label to suggest"),
        (2, "relabel", "verdict: flagged"),
    ]
    words = [sys.executable, "-m", "undermargin", "clean", str(rows.path), "--flagged", "relabel", "--dry-run"]
    assert "1 of the dropped samples resemble" in subprocess.run(words, capture_output=True, text=True).stdout


def test_data_that_a_strangers_folder_names_are_read_only_when_the_user_names_them_too(rows, tmp_path):
    stranger = rows.path.rename(tmp_path / "from elsewhere")
    assert Cleaning.of(stranger).summary()["num_dropped"] == 2  # looks at the verdicts alone
    with pytest.raises(FolderError, match="was not scanned here, and names .*d.csv as its data"):
        Cleaning.of(stranger).write(tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    Cleaning.of(stranger, data=tmp_path / "d.csv").write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").exists()
