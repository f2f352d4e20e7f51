"""What a finished scan's data set looks like, read again from where it was."""

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from undermargin.errors import InputError
from undermargin.sources.samples import Reading
from undermargin.sources.source import load, reopen


def reopened(path, **reading):
    samples = load(path, Reading(**reading))
    ids = samples.ids or [str(index) for index in range(len(samples))]
    return reopen(samples.found, samples.kind, ids, fingerprint=samples.fingerprint())


def photo(color, size=(40, 30)):
    data = io.BytesIO()
    Image.new("RGB", size, color).save(data, "PNG")
    return data.getvalue()


def color(jpeg):
    return np.asarray(Image.open(io.BytesIO(jpeg))).mean((0, 1)).round(-1).tolist()


RED, BLUE = (200, 30, 30), (30, 30, 200)


@pytest.fixture
def folder(tmp_path):
    for name, shade in (("cat", RED), ("dog", BLUE)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(4):
            (tmp_path / "photos" / name / f"{number}.png").write_bytes(photo(shade))
    return tmp_path / "photos"


def test_photos_are_encoded_anew(folder):
    found = reopened(folder)
    assert found.is_there
    assert found.file(5) == folder / "dog" / "1.png"
    assert found.picture(5, 64)[:2] == b"\xff\xd8"  # JPEG, though the file is PNG
    assert color(found.picture(5, 64)) == [30, 30, 200]


def test_a_file_outside_the_folder_is_refused(folder):
    (folder.parent / "secret.png").write_bytes(photo(RED))
    (folder / "cat" / "link.png").symlink_to(folder.parent / "secret.png")
    for name in ("../secret.png", "cat/link.png", "/etc/hostname"):
        with pytest.raises(InputError, match="not below"):
            reopen({"path": str(folder), "format": "class folders"}, "images", [name]).picture(0, 64)


def test_rows_are_found_again_behind_a_filter(tmp_path):
    frame = pd.DataFrame(
        {
            "split": ["test", "train"] * 6,
            "text": [f"text number {n}" for n in range(12)],
            "label": ["a", "a", "b", "b"] * 3,
            "age": range(12),
        }
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = reopened(tmp_path / "d.csv", where="split=train")
    assert found.rows.tolist() == [1, 3, 5, 7, 9, 11]
    assert found.text(1) == "text number 3"
    assert found.row(1) == {"split": "train", "text": "text number 3", "label": "b", "age": 3}
    assert found.column("age").to_pylist() == [1, 3, 5, 7, 9, 11]
    frame[:8].to_csv(tmp_path / "d.csv", index=False)
    again = reopen(found.found, found.kind, found.ids)
    with pytest.raises(InputError, match="has changed since the scan: it now has 4 samples, the scan saw 6"):
        again.text(0)


def test_rows_are_found_again_behind_unreadable_images(tmp_path):
    data = [photo(RED), b"broken", photo(BLUE), *[photo(RED)] * 8]
    pd.DataFrame({"image": [{"bytes": one, "path": None} for one in data], "label": [0, 1, 1, *[0, 1] * 4]}).to_parquet(
        tmp_path / "d.parquet"
    )
    found = reopened(tmp_path / "d.parquet")
    assert found.rows.tolist() == [0, *range(2, 11)]
    assert color(found.picture(1, 32)) == [30, 30, 200]


def test_a_column_of_image_files(folder):
    names = [f"{name}/{number}.png" for name in ("cat", "dog") for number in range(4)]
    pd.DataFrame({"image": names, "label": ["cat"] * 4 + ["dog"] * 4}).to_csv(folder / "labels.csv", index=False)
    samples = load(folder / "labels.csv")
    assert (samples.kind, len(samples)) == ("images", 8)
    assert color(reopened(folder / "labels.csv").picture(7, 32)) == [30, 30, 200]
    pd.DataFrame({"image": ["../x.png", *names[1:]], "label": ["cat"] * 4 + ["dog"] * 4}).to_csv(
        folder / "labels.csv", index=False
    )
    assert load(folder / "labels.csv").skipped[0][0] == "0"


def test_arrays_and_data_from_memory(tmp_path):
    pixels = np.zeros((8, 8, 8), np.uint8)
    pixels[3] = 200
    np.savez(tmp_path / "d.npz", x=pixels, y=[0, 1] * 4)
    found = reopened(tmp_path / "d.npz")
    image = Image.open(io.BytesIO(found.picture(3, 64)))
    assert (image.size, color(found.picture(3, 64))) == ((64, 64), [200, 200, 200])
    assert not reopened((pixels, [0, 1] * 4)).is_there
