"""Official data sets: small files in the published layouts, whole and damaged."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from undermargin.errors import InputError
from undermargin.sources import official
from undermargin.sources.official.record import OfficialSet
from undermargin.sources.samples import Reading


def idx_file(values):
    """Images (samples, 28, 28) or labels (samples,) as MNIST stores them."""
    values = np.asarray(values, np.uint8)
    return struct.pack(f">{values.ndim + 1}i", 2048 + values.ndim, *values.shape) + values.tobytes()


def write_mnist(folder, *, packed=True):
    folder.mkdir(parents=True)
    for prefix, labels in (("train", [3, 1, 4, 1]), ("t10k", [5, 9])):
        images = np.zeros((len(labels), 28, 28))
        images[:, 2, 5] = labels  # row 2, column 5
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            data = idx_file(values)
            name = f"{prefix}-{name}-ubyte"
            (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)


@pytest.mark.parametrize("place", ["MNIST/raw", "mnist", "."])
@pytest.mark.parametrize("packed", [True, False])
def test_mnist_in_every_place_packed_or_not(tmp_path, place, packed):
    write_mnist(tmp_path / "root" / place, packed=packed)
    train = official.load("mnist", tmp_path / "root", check=False)
    assert train.images.shape == (4, 28, 28, 1)
    assert train.images.dtype == np.uint8
    assert train.images.flags.writeable  # torch warns otherwise
    assert train.images[:, 2, 5, 0].tolist() == train.labels.tolist() == [3, 1, 4, 1]
    assert train.class_names[3] == "3"
    assert official.load("mnist", tmp_path / "root", "test", check=False).labels.tolist() == [5, 9]
    assert official.found(tmp_path / "root")["mnist"].counts == {"train": 4, "test": 2}


def test_fashion_mnist_is_not_taken_for_mnist(tmp_path):
    write_mnist(tmp_path / "fashion-mnist")
    assert official.load("fashion-mnist", tmp_path, check=False).class_names[9] == "Ankle boot"
    assert official.found(tmp_path)["mnist"].path is None


def test_files_that_are_not_the_published_ones_are_refused_with_both_checksums(tmp_path):
    write_mnist(tmp_path / "mnist")
    with pytest.raises(InputError, match=r"md5 sum is [0-9a-f]{32}, expected f68b3c2dcbeaaa9fbdd348bbdeb94873"):
        official.load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], r"3,135 bytes of values, its header says 4 x 28 x 28; was it cut off"),
        (lambda data: data[:10], r"0 bytes of values, its header says 4 x 0 x 0; was it cut off"),
        (lambda data: b"", "begins with nothing"),
        (lambda data: b"\0\0\x08\x01" + data[4:], "begins with 00000801, expected the magic number 00000803"),
        (lambda data: data[:4] + b"\xff\xff\xff\xff" + data[8:], "header says 4294967295 x 28 x 28"),
    ],
)
def test_a_damaged_idx_file_says_what_is_wrong(tmp_path, damage, message):
    write_mnist(tmp_path / "mnist", packed=False)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        official.load("mnist", tmp_path, check=False)


def test_a_cut_off_packed_file_cannot_be_unpacked(tmp_path):
    write_mnist(tmp_path / "mnist")
    path = tmp_path / "mnist" / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot be unpacked"):
        official.load("mnist", tmp_path, check=False)


def test_images_and_labels_must_be_as_many(tmp_path):
    write_mnist(tmp_path / "mnist", packed=False)
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx_file([1, 2]))
    with pytest.raises(InputError, match="4 images and 2 labels"):
        official.load("mnist", tmp_path, check=False)


def test_a_data_set_without_samples_is_refused(tmp_path):
    write_mnist(tmp_path / "mnist", packed=False)
    (tmp_path / "mnist" / "train-images-idx3-ubyte").write_bytes(idx_file(np.zeros((0, 28, 28))))
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx_file([]))
    with pytest.raises(InputError, match="mnist has no samples"):
        official.load("mnist", tmp_path, check=False)


def test_a_missing_file_is_named(tmp_path):
    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match="neither train-labels-idx1-ubyte nor"):
        official.load("mnist", tmp_path, check=False)


@pytest.mark.parametrize("name", official.OFFICIAL)
def test_a_missing_data_set_says_where_to_get_it_and_where_to_put_it(tmp_path, name):
    with pytest.raises(InputError, match=rf"{name} is not in .*download it from http.* and put it at {tmp_path}"):
        official.load(name, tmp_path)
    assert official.found(tmp_path)[name] == official.Found(None, {})


def test_every_data_set_is_on_the_page_about_them():
    page = (Path(__file__).parent.parent / "docs" / "official-data.md").read_text()
    named = {name for row in page.split("\n") if row.startswith("| ") for name in row.split(" | ")[0][2:].split(", ")}
    assert named - {"name", "---"} == set(official.OFFICIAL)


def test_unknown_names_splits_and_columns_are_refused_with_the_choice(tmp_path):
    with pytest.raises(InputError, match="no data set 'mist'; choose from mnist, "):
        official.load("mist", tmp_path)
    with pytest.raises(InputError, match="no split 'val'; choose from train, test"):
        official.load("mnist", tmp_path, "val")
    with pytest.raises(InputError, match="no labels 'worse'; it has one set of labels only"):
        official.load("mnist", tmp_path, column="worse")


@pytest.mark.parametrize("place", ["cifar10_train.parquet", "mnist/train-images-idx3-ubyte.gz"])
def test_damaged_files_do_not_hide_what_else_is_there(tmp_path, place):
    write_mnist(tmp_path / "mnist")
    data = bytearray((tmp_path / "mnist/train-images-idx3-ubyte.gz").read_bytes())
    data[10:13] = b"\xff" * 3  # where the compressed stream begins
    (tmp_path / place).write_bytes(data if "mnist" in place else b"PAR1garbagePAR1")
    name = "mnist" if "mnist" in place else "cifar10"
    found = official.found(tmp_path)
    assert (found[name].path is None, found[name].counts) == (False, {})
    with pytest.raises(InputError, match=r"(?s)train-images-idx3-ubyte.gz|cifar10_train.parquet") as caught:
        official.load(name, tmp_path, check=False)
    assert "\n" not in str(caught.value)


@pytest.fixture
def real():
    """The folder of the real data sets: the one that is named, or the one beside this checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    root = os.environ.get("UNDERMARGIN_DATA", beside)
    if not Path(root).is_dir():
        pytest.skip("UNDERMARGIN_DATA does not name a folder with the real data sets")
    return root


def real_part(root, name, split):
    if official.found(root)[name].path is None:
        pytest.skip(f"{name} is not in {root}")
    return official.load(name, root, split)


def test_the_real_mnist_has_its_known_size_mean_and_deviation(real):
    train, test = (real_part(real, "mnist", split) for split in ("train", "test"))
    assert (train.images.shape, test.images.shape) == ((60_000, 28, 28, 1), (10_000, 28, 28, 1))
    assert (train.images.mean() / 255, train.images.std() / 255) == pytest.approx((0.1307, 0.3081), abs=5e-5)
    assert np.bincount(test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_the_real_cifar10_has_a_thousand_test_images_a_class(real):
    test = real_part(real, "cifar10", "test")
    assert test.images.shape == (10_000, 32, 32, 3)
    assert np.bincount(test.labels).tolist() == [1000] * 10
    assert test.images.mean((0, 1, 2)) / 255 == pytest.approx([0.494, 0.485, 0.450], abs=2e-3)


def test_the_real_tiny_imagenet_has_fifty_validation_images_a_class(real):
    test = real_part(real, "tiny-imagenet", "test")
    assert test.images.shape[1:] == (64, 64, 3)
    assert set(np.bincount(test.labels)) == {50}
    assert test.class_names == sorted(test.class_names)
    assert test.class_names[0] == "n01443537 goldfish"


def test_images_are_brought_to_a_smaller_side_by_means_of_squares():
    images = np.array([[1, 3, 10, 10], [5, 7, 10, 10], [0, 0, 20, 21], [0, 0, 22, 23]], np.uint8).reshape(1, 4, 4, 1)
    one = OfficialSet(images, np.array([0]), ["cat"])
    assert one.samples(Reading(image_size=2)).inputs[0, :, :, 0].tolist() == [[4, 10], [0, 22]]  # 21.5 to the even one
    assert one.samples(Reading(image_size=4)).inputs.tolist() == images.tolist()
    with pytest.raises(InputError, match="4 x 4 pixels cannot be scaled to 3; choose a side that divides them"):
        one.samples(Reading(image_size=3))
