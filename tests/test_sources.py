"""Data as people have it: found by looking at it, or refused in one line."""

import io

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from undermargin.errors import InputError
from undermargin.sources.pictures import decode
from undermargin.sources.samples import Reading
from undermargin.sources.source import load


def picture(color=(200, 30, 30), size=(40, 30), mode="RGB", suffix="PNG", **save):
    image = Image.new("RGB", size, color).convert(mode)
    data = io.BytesIO()
    image.save(data, suffix, **save)
    return data.getvalue()


@pytest.fixture
def photos(tmp_path):
    """Two classes of six images each."""
    root = tmp_path / "photos"
    for name, color in (("cat", (200, 30, 30)), ("dog", (30, 30, 200))):
        (root / name).mkdir(parents=True)
        for number in range(6):
            (root / name / f"{number}.png").write_bytes(picture(color))
    return root


def test_class_folders(photos):
    samples = load(photos)
    assert (samples.kind, len(samples), samples.class_names) == ("images", 12, ["cat", "dog"])
    assert samples.ids[0] == "cat/0.png"
    assert samples.labels.tolist() == [0] * 6 + [1] * 6
    assert samples.inputs[0, 5, 5].tolist() == [200, 30, 30]


@pytest.mark.parametrize("suffix", ["png", "jpeg", "webp", "bmp", "gif"])
def test_every_image_format_is_read(suffix):
    pixel = decode(picture(suffix=suffix.upper()), 32)[10, 10]
    np.testing.assert_allclose(pixel, [200, 30, 30], atol=8)


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "LA", "RGBA", "1", "I;16"])
def test_every_mode_becomes_color(mode):
    suffix = "JPEG" if mode == "CMYK" else "PNG"
    assert decode(picture(mode=mode, suffix=suffix), 32).shape == (32, 32, 3)


def test_what_is_transparent_becomes_white():
    image = Image.new("RGBA", (32, 32), (0, 0, 0, 0))
    data = io.BytesIO()
    image.save(data, "PNG")
    assert decode(data.getvalue(), 32)[3, 3].tolist() == [255, 255, 255]


def test_a_turned_photo_is_set_upright():
    image = Image.new("RGB", (32, 32), "black")
    image.paste((255, 255, 255), (0, 0, 32, 16))  # the upper half is white
    exif = image.getexif()
    exif[0x0112] = 3  # stored upside down
    data = io.BytesIO()
    image.save(data, "PNG", exif=exif)
    pixels = decode(data.getvalue(), 32)
    assert pixels[4, 4].tolist() == [0, 0, 0]
    assert pixels[28, 4].tolist() == [255, 255, 255]


def test_the_first_frame_of_an_animation_counts():
    frames = [Image.new("RGB", (32, 32), color) for color in ("red", "blue")]
    data = io.BytesIO()
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:])
    assert decode(data.getvalue(), 32)[0, 0, 0] > 200


def test_damaged_images_are_skipped_and_listed(photos):
    (photos / "cat" / "0.png").write_bytes(picture()[:40])
    (photos / "dog" / "0.png").write_bytes(b"nonsense")
    samples = load(photos)
    assert len(samples) == 10
    assert [name for name, _ in samples.skipped] == ["cat/0.png", "dog/0.png"]
    assert samples.ids[0] == "cat/1.png"


def test_too_many_damaged_images_are_an_error(photos):
    for number in range(4):
        (photos / "cat" / f"{number}.png").write_bytes(b"")
    with pytest.raises(InputError, match="4 of 12 images"):
        load(photos)


def test_an_empty_class_is_named_and_hidden_files_are_not_classes(photos):
    (photos / "bird").mkdir()
    (photos / ".cache").mkdir()
    samples = load(photos)
    assert samples.found["empty_classes"] == ["bird"]
    assert samples.class_names == ["cat", "dog"]


ROWS = {
    "text": [f"a sentence about number {n}" for n in range(8)],
    "label": ["yes", "no"] * 4,
    "score": [0.5 * n for n in range(8)],
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_rows_of_text(tmp_path, suffix):
    path, frame = tmp_path / f"data{suffix}", pd.DataFrame(ROWS)
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    samples = load(path)
    assert (samples.kind, samples.class_names) == ("text", ["no", "yes"])
    assert samples.inputs[3] == "a sentence about number 3"
    assert samples.found["guessed"] == ["label: label", "text: text"]


def test_columns_may_be_named_and_rows_chosen(tmp_path):
    frame = pd.DataFrame({"a b": ROWS["text"], "kind": [1, 0] * 4, "split": ["train"] * 6 + ["test"] * 2})
    frame.to_csv(tmp_path / "d.csv", index=False)
    samples = load(tmp_path / "d.csv", Reading(label="kind", text="a b", where="split=train"))
    assert (len(samples), samples.class_names, samples.kind) == (6, ["0", "1"], "text")


def test_a_table_of_numbers_categories_dates_and_gaps():
    frame = pd.DataFrame(
        {
            "age": [1.0, None, 3.0, 4.0] * 2,
            "city": ["here", "there", None, "here"] * 2,
            "member": [True, False, True, None] * 2,
            "since": pd.to_datetime(["2020-01-01", "2021-01-01"] * 4),
            "label": [True, False] * 4,
        }
    )
    samples = load(frame)
    assert samples.kind == "table"
    assert samples.class_names == ["False", "True"]
    assert samples.inputs.numbers.shape == (8, 2)
    assert np.isnan(samples.inputs.numbers[1, 0])
    assert samples.inputs.codes[:3, 0].tolist() == [1, 2, 0]  # 0 is missing
    assert samples.inputs.num_codes == [3, 3]


def test_images_as_hugging_face_stores_them(tmp_path):
    images = [{"bytes": picture((10 * n, 0, 0)), "path": None} for n in range(8)]
    table = pa.table({"image": images, "label": [0, 1] * 4})
    pq.write_table(table, tmp_path / "d.parquet")
    samples = load(tmp_path / "d.parquet")
    assert samples.kind == "images"
    assert samples.inputs[3, 0, 0, 0] == 30


def test_a_hugging_face_data_set_on_disk_knows_its_classes(tmp_path):
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    data = datasets.Dataset.from_dict({"text": ROWS["text"], "label": [1, 0] * 4}, features=features)
    data.save_to_disk(tmp_path / "d")
    for source in (data, tmp_path / "d"):
        samples = load(source)
        assert samples.class_names == ["no", "yes"]
        assert samples.labels.tolist() == [1, 0] * 4


def test_arrays_of_images_and_of_embeddings(tmp_path):
    images, labels = np.zeros((8, 10, 12), np.uint8), np.array([0, 1] * 4)
    np.savez(tmp_path / "i.npz", x=images, y=labels, classes=["cat", "dog"])
    samples = load(tmp_path / "i.npz")
    assert (samples.kind, samples.inputs.shape, samples.class_names) == ("images", (8, 10, 12, 1), ["cat", "dog"])
    np.save(tmp_path / "e.npy", np.ones((8, 5)))
    np.save(tmp_path / "e_labels.npy", labels)
    assert load(tmp_path / "e.npy").kind == "embeddings"


def test_floats_between_0_and_1_and_channels_first_become_bytes():
    samples = load((np.full((8, 3, 16, 16), 0.5, np.float32), [0, 1] * 4))
    assert samples.inputs.shape == (8, 16, 16, 3)
    assert samples.inputs[0, 0, 0, 0] == 128


def test_a_torch_data_set_is_read_sample_by_sample():
    data = torch.utils.data.TensorDataset(torch.rand(8, 3, 16, 16), torch.tensor([0, 1] * 4))
    assert load(data).kind == "images"


def test_the_fingerprint_changes_with_data_and_labels_and_with_nothing_else():
    inputs, labels = np.arange(40.0).reshape(8, 5), [0, 1] * 4
    first = load((inputs, labels)).fingerprint()
    assert load((inputs.copy(), list(labels))).fingerprint() == first
    assert load((inputs + 1, labels)).fingerprint() != first
    assert load((inputs, [1, 0] * 4)).fingerprint() != first


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"x": [1.0] * 8, "y": ["a"] * 8}, {}, "one class only"),
        ({"x": [1.0] * 8, "z": [0, 1] * 4}, {}, "holds the labels.* Columns are x, z; pass --label NAME"),
        (
            {"x": [1.0] * 8, "y": [0, 1] * 4},
            {"label": "why"},
            "no column is called 'why'; columns are x, y. Check --label",
        ),
        ({"x": [1.0] * 8, "y": [0, 1, None, 1] * 2}, {}, "2 of 8 samples have no label"),
        ({"x": [1.0] * 8, "y": list("abcdefgh")}, {}, "8 different values in 8 samples: they look like ids"),
        ({"x": [1.0] * 8, "y": [0.5, 1.5] * 4}, {}, "fractions"),
        ({"x": [1.0] * 8, "y": [[0, 1], [1]] * 4}, {}, "multi-label"),
        ({"x": [1.0] * 8, "y": [0, 1] * 4}, {"where": "x"}, "must be COLUMN=VALUE"),
        ({"x": [1.0] * 8, "y": [0, 1] * 4}, {"where": "x=7"}, "no rows where x=7"),
        ({"x": [{"a": 1}] * 8, "y": [0, 1] * 4}, {}, "none of the columns x holds numbers"),
    ],
)
def test_rows_that_cannot_be_scanned_are_refused(frame, options, message):
    with pytest.raises(InputError, match=message):
        load(pd.DataFrame(frame), Reading(**options))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"x,label\n1,2,3\n", "cannot be read as CSV"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read as CSV|which column"),
        ("a.csv", b"", "cannot be read as CSV"),
        ("a.jsonl", b'{"x": 1}\n{oops', "cannot be read as JSON lines"),
        ("a.parquet", b"PAR1", "cannot be read as Parquet"),
        ("a.npz", b"PK nonsense", "cannot be read as arrays: it is not a zip archive"),
        ("a.npy", b"nonsense", "needs its labels beside it"),
        ("a.docx", b"", "ends in none of"),
    ],
)
def test_damaged_and_unknown_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(tmp_path / name)


def test_nothing_there_and_no_images(tmp_path):
    with pytest.raises(InputError, match="there is nothing at"):
        load(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no images in class folders"):
        load(tmp_path / "empty")
    with pytest.raises(InputError, match="a int cannot be scanned"):
        load(5)


def corrupted(data, rng):
    """A valid file with bytes changed, cut off or repeated."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, max(len(data), 1)))
        kind = rng.integers(0, 4)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and data:
            data[at : at + 4] = rng.bytes(4)
        elif kind == 2:
            data = data[:at] + data[at // 2 :]
        else:
            data[at:at] = b'"\n,\x00{'
    return bytes(data)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz", "compressed.npz", "folder"])
def test_corrupted_inputs_end_in_one_line_or_a_skipped_file(suffix, tmp_path, photos):
    rng = np.random.default_rng(0)
    frame, buffer = pd.DataFrame(ROWS), io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(buffer)
    elif suffix.endswith(".npz"):
        save = np.savez if suffix == ".npz" else np.savez_compressed
        save(buffer, x=np.arange(40.0).reshape(8, 5), y=[0, 1] * 4)
    text = frame.to_csv(index=False) if suffix == ".csv" else frame.to_json(orient="records", lines=True)
    whole = picture() if suffix == "folder" else buffer.getvalue() or text.encode()
    for number in range(200):
        path = photos / "cat" / "0.png" if suffix == "folder" else tmp_path / f"{number}{suffix}"
        path.write_bytes(corrupted(whole, rng))
        message = ""
        try:
            load(photos if suffix == "folder" else path)
        except InputError as error:
            message = str(error)
        assert "\n" not in message


def test_a_column_that_only_numbers_the_rows_is_no_feature():
    frame = pd.DataFrame(
        {
            "": range(8),
            "row": range(1, 9),
            "id": [5, 3, 9, 1, 2, 4, 7, 8],
            "age": [3, 1, 2, 2, 5, 1, 4, 1],
            "y": [0, 1] * 4,
        }
    )
    assert load(frame).inputs.number_names == ["age"]


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (np.array([0.0, 0.5, 1.0]), [0, 128, 255]),
        (np.array([-1.0, 0.0, 1.0]), [0, 128, 255]),
        (np.array([0, 2048, 4095], np.uint16), [0, 128, 255]),
        (np.array([False, True, True]), [0, 255, 255]),
        (np.array([0.0, 8.0, 16.0]), [0, 128, 255]),  # scikit-learn's digits
        (np.array([0, 8, 16], np.uint8), [0, 128, 255]),
        (np.array([0, 1, 1], np.uint8), [0, 255, 255]),
        (np.array([3, 20, 200], np.uint8), [3, 20, 200]),
        (np.array([-2.0, -2.0, -2.0]), [0, 0, 0]),
        (np.array([0.0, 100.0, 200.0]), [0, 100, 200]),
    ],
)
def test_whatever_range_pixels_have_becomes_that_of_bytes(images, expected):
    pixels = np.resize(images, (6, 2, 3))
    assert load((pixels, [0, 1] * 3)).inputs[0, 0, :, 0].tolist() == expected


def test_pixels_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="48 pixels of the images are not finite"):
        load((np.full((6, 2, 4), np.nan), [0, 1] * 3))


def test_text_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"text,label\n" + "schön und gut,a\nso là là,b\n".encode("latin-1") * 6)
    with pytest.raises(InputError, match="not UTF-8"):
        load(tmp_path / "d.csv")


def test_a_folder_called_like_an_image_is_passed_over(photos):
    (photos / "cat" / "album.png").mkdir()
    assert len(load(photos)) == 12


def test_an_archive_of_python_objects_or_of_other_names_says_so_once(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), y=np.array([{}, 1, 2, 3], dtype=object))
    with pytest.raises(InputError, match="holds Python objects, which are never run"):
        load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", pixels=np.ones((4, 2)), y=[0, 1] * 2)
    with pytest.raises(InputError, match="b.npz has the arrays pixels, y; expected one of x, images"):
        load(tmp_path / "b.npz")


def test_a_folder_of_several_splits_says_which_there_are_and_one_can_be_named(tmp_path):
    one = datasets.Dataset.from_dict({"text": ["some words here"] * 4, "label": ["a", "b"] * 2})
    both = datasets.DatasetDict({"train": one, "test": one})
    both.save_to_disk(tmp_path / "both")
    with pytest.raises(InputError, match="holds 2 splits: train, test; pass --split train"):
        load(tmp_path / "both")
    assert len(load(tmp_path / "both" / "train")) == 4
    with pytest.raises(InputError, match="the data set holds 2 splits: train, test; pass --split train"):
        load(both)


def test_of_a_folder_with_one_split_that_one_is_taken(tmp_path):
    one = datasets.Dataset.from_dict({"text": ["some words here"] * 4, "label": ["a", "b"] * 2})
    datasets.DatasetDict({"train": one}).save_to_disk(tmp_path / "data")
    samples = load(tmp_path / "data")
    assert samples.found["path"] == str(tmp_path / "data" / "train")


@pytest.mark.parametrize(("sign", "name"), [(";", ";"), ("\t", "tab")])
def test_a_csv_with_another_delimiter_is_read_and_it_is_said_so(tmp_path, sign, name):
    rows = [["size, in m", "label"], ["0.5", "a"], ["1.5", "b"], ["2.5", "a"], ["4", "b"]]
    (tmp_path / "d.csv").write_text("\n".join(sign.join(row) for row in rows))
    samples = load(tmp_path / "d.csv")
    assert samples.inputs.number_names == ["size, in m"]
    assert f"delimiter: {name}" in samples.found["guessed"]


def test_between_semicolons_a_comma_may_stand_in_a_number(tmp_path):
    (tmp_path / "d.csv").write_text("size;label\n0,5;a\n1,5;b\n2,5;a\n4;b\n")
    assert load(tmp_path / "d.csv").inputs.numbers[:, 0].tolist() == [0.5, 1.5, 2.5, 4]


def test_semicolons_within_quotes_leave_a_comma_the_delimiter(tmp_path):
    (tmp_path / "d.csv").write_text('"one;two;three;four",label\n1,a\n2,b\n7,a\n4,b\n')
    assert load(tmp_path / "d.csv").inputs.number_names == ["one;two;three;four"]


def test_how_many_images_were_read_is_told_up_to_the_last(photos):
    told = []
    load(photos, Reading(on_read=lambda done, total: told.append((done, total))))
    assert told == [(12, 12)]
