"""CIFAR and its human labels, in every version: written here byte by byte as the published files are."""

import io
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from undermargin.errors import InputError
from undermargin.sources import official
from undermargin.sources.official.unpickling import unpickled

FINE = [f"fine{number}" for number in range(100)]
COARSE = [f"coarse{number}" for number in range(20)]


def planes(labels):
    """One image a label, (labels, 3072): red 10 + label in row 1, column 2; green 100 and blue 200 there."""
    data = np.zeros((len(labels), 3, 32, 32), np.uint8)
    data[:, 0, 1, 2] = 10 + np.asarray(labels)
    data[:, 1, 1, 2], data[:, 2, 1, 2] = 100, 200
    return data.reshape(len(labels), 3072)


def python2(value):
    """A pickle as Python 2 wrote it, protocol 2: texts are byte strings, which Python 3 cannot write."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value):
    if isinstance(value, str):
        return b"T" + struct.pack("<i", len(value)) + value.encode("latin1")
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_python2(part) for pair in value.items() for part in pair) + b"u"
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + b"K\x00\x85" + _python2("b") + b"\x87R"
    kind = b"cnumpy\ndtype\n" + _python2("u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + _python2("|") + b"NNN" + _python2(-1) * 2 + b"K\x00tb"
    shape = b"".join(map(_python2, value.shape)) + b"\x86"
    return empty + b"(K\x01" + shape + kind + b"\x89" + _python2(value.tobytes().decode("latin1")) + b"tb"


def python3(value):
    """A pickle with names as bytes, as a later Python writes it in the old protocol."""
    return pickle.dumps({name.encode(): item for name, item in value.items()}, protocol=2)


def write_cifar10(folder, dump):
    folder.mkdir()
    for number in range(1, 6):
        labels = [number, number - 1]
        (folder / f"data_batch_{number}").write_bytes(dump({"data": planes(labels), "labels": labels}))
    (folder / "test_batch").write_bytes(dump({"data": planes([9]), "labels": [9]}))


def write_cifar100(folder, dump):
    folder.mkdir()
    for name, fine, coarse in (("train", [99, 5, 7], [19, 1, 2]), ("test", [3], [4])):
        batch = {"data": planes(coarse), "fine_labels": fine, "coarse_labels": coarse}
        (folder / name).write_bytes(dump(batch))
    (folder / "meta").write_bytes(dump({"fine_label_names": FINE, "coarse_label_names": COARSE}))


def packed(folder, path):
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, folder.name)


def check_cifar10(root):
    train = official.load("cifar10", root, check=False)
    assert train.labels.tolist() == [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]
    assert train.images.shape == (10, 32, 32, 3)
    assert train.images.flags.writeable
    assert train.images[:, 1, 2].tolist() == [[10 + label, 100, 200] for label in train.labels]
    assert train.class_names[9] == "truck"
    assert official.load("cifar10", root, "test", check=False).labels.tolist() == [9]


@pytest.mark.parametrize("dump", [python2, python3])
def test_the_python_version_of_cifar10(tmp_path, dump):
    write_cifar10(tmp_path / "cifar-10-batches-py", dump)
    check_cifar10(tmp_path)


def test_cifar10_is_read_from_the_tar_file_itself(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    (tmp_path / "root").mkdir()
    packed(tmp_path / "cifar-10-batches-py", tmp_path / "root" / "cifar-10-python.tar.gz")
    check_cifar10(tmp_path / "root")
    with pytest.raises(InputError, match="expected c58f30108f718f92721af3b95e74349a"):
        official.load("cifar10", tmp_path / "root")


def test_the_binary_version_of_cifar10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name, labels in [("test_batch", [9]), *((f"data_batch_{n}", [n, n - 1]) for n in range(1, 6))]:
        records = np.concatenate([np.array(labels, np.uint8)[:, None], planes(labels)], 1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    check_cifar10(tmp_path)


@pytest.mark.parametrize("dump", [python2, python3])
def test_the_python_version_of_cifar100_has_fine_and_coarse_labels(tmp_path, dump):
    write_cifar100(tmp_path / "cifar-100-python", dump)
    fine = official.load("cifar100", tmp_path, check=False)
    assert (fine.labels.tolist(), len(fine.class_names), fine.class_names[99]) == ([99, 5, 7], 100, "fine99")
    coarse = official.load("cifar100", tmp_path, column="coarse", check=False)
    assert (coarse.labels.tolist(), len(coarse.class_names)) == ([19, 1, 2], 20)
    assert coarse.images[:, 1, 2, 0].tolist() == [29, 11, 12]


def test_the_binary_version_of_cifar100(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    records = np.concatenate([np.array([[19, 99], [1, 5]], np.uint8), planes([19, 1])], 1)  # coarse before fine
    (folder / "train.bin").write_bytes(records.tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(FINE) + "\n")
    (folder / "coarse_label_names.txt").write_text("\n".join(COARSE) + "\n")
    assert official.load("cifar100", tmp_path, check=False).labels.tolist() == [99, 5]
    coarse = official.load("cifar100", tmp_path, column="coarse", check=False)
    assert coarse.labels.tolist() == [19, 1]
    assert coarse.images[:, 1, 2].tolist() == [[29, 100, 200], [11, 100, 200]]


def test_cifar10_as_parquet(tmp_path):
    for split, labels in (("train", [0, 0, 3]), ("test", [9])):
        images = []
        for label in labels:
            file = io.BytesIO()
            Image.new("RGB", (32, 32), (label, 100, 200)).save(file, "PNG")
            images.append({"bytes": file.getvalue(), "path": None})
        pq.write_table(pa.table({"image": images, "label": labels}), tmp_path / f"cifar10_{split}.parquet")
    train = official.load("cifar10", tmp_path, check=False)
    assert train.images[:, 5, 5].tolist() == [[0, 100, 200], [0, 100, 200], [3, 100, 200]]
    assert train.labels.tolist() == [0, 0, 3]
    assert official.found(tmp_path)["cifar10"].counts == {"train": 3, "test": 1}
    with pytest.raises(InputError, match=r"has 3 samples in its split train, 50000 are published; download it again"):
        official.load("cifar10", tmp_path)
    (tmp_path / "cifar10_test.parquet").unlink()
    with pytest.raises(InputError, match="there is no .*cifar10_test.parquet"):
        official.load("cifar10", tmp_path, "test")


def test_an_image_that_cannot_be_read_is_an_error_not_a_smaller_data_set(tmp_path):
    file = io.BytesIO()
    Image.new("RGB", (32, 32)).save(file, "PNG")
    images = [{"bytes": file.getvalue(), "path": None}] * 9 + [{"bytes": b"no image", "path": None}]
    pq.write_table(pa.table({"image": images, "label": [1] * 10}), tmp_path / "cifar10_train.parquet")
    with pytest.raises(InputError, match="1 of 10 images cannot be read, the first is 9: not an image"):
        official.load("cifar10", tmp_path)


class Malicious:
    def __reduce__(self):
        return os.mkdir, (os.environ["UNDERMARGIN_TEST_VICTIM"],)


def test_a_pickle_that_would_run_code_is_refused_and_nothing_of_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERMARGIN_TEST_VICTIM", str(tmp_path / "victim"))
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    bad = pickle.dumps({"data": Malicious(), "labels": [1]}, protocol=2)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").write_bytes(bad)
    with pytest.raises(InputError, match=r"data_batch_3 cannot be read: it refers to posix.mkdir"):
        official.load("cifar10", tmp_path, check=False)
    assert not (tmp_path / "victim").exists()
    pickle.loads(bad)  # the same bytes, read without care
    assert (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "code",
    [
        b"cnumpy\nload\n.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00utf7tR.",  # a codec that no array needs
        b"cbuiltins\neval\n(X\x03\x00\x00\x001+1tR.",
    ],
)
def test_only_what_arrays_need_is_allowed(tmp_path, code):
    with pytest.raises(InputError, match="cannot be read"):
        unpickled(code, tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-100], "data_batch_1 cannot be read"),
        (lambda data: b"", "data_batch_1 cannot be read: Ran out of input"),
        (lambda data: pickle.dumps([1, 2]), "holds a list, expected a mapping"),
        (lambda data: python2({"data": planes([1])}), "lacks labels; it has data"),
        (lambda data: python2({"data": planes([1]), "labels": [1, 2]}), r"shape \(1, 3072\) for 2 labels"),
        (
            lambda data: python2({"data": planes([1]), "labels": ["1"]}),
            "labels in .* does not hold one whole number per",
        ),
        (
            lambda data: python2({"data": planes([1]), "labels": [[1], 2]}),
            "labels in .* does not hold one whole number",
        ),
        (lambda data: python2({"data": [1], "labels": [1]}), "data of shape list for 1 labels"),
        (lambda data: python2({"data": planes([1]), "labels": [10]}), r"labels from 1 to 10, expected 0..9"),
    ],
)
def test_a_damaged_batch_says_what_is_wrong(tmp_path, damage, message):
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    path = tmp_path / "cifar-10-batches-py" / "data_batch_1"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        official.load("cifar10", tmp_path, check=False)


def test_labels_that_are_missing_from_a_parquet_file_are_refused(tmp_path):
    file = io.BytesIO()
    Image.new("RGB", (32, 32)).save(file, "PNG")
    images = [{"bytes": file.getvalue(), "path": None}] * 2
    pq.write_table(pa.table({"image": images, "label": [1, None]}), tmp_path / "cifar10_train.parquet")
    with pytest.raises(InputError, match="label in .* does not hold one whole number per sample"):
        official.load("cifar10", tmp_path)
    pq.write_table(pa.table({"img": images, "label": [1, 2]}), tmp_path / "cifar10_train.parquet")
    with pytest.raises(InputError, match="lacks the column image; it has img, label"):
        official.load("cifar10", tmp_path)


def test_a_batch_that_is_not_the_published_one_is_refused(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    with pytest.raises(InputError, match="data_batch_1 is not the published file: .* expected c99cafc1"):
        official.load("cifar10", tmp_path)


def test_a_missing_batch_and_a_cut_off_binary_file_are_named(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    (tmp_path / "cifar-10-batches-py" / "data_batch_4").unlink()
    with pytest.raises(InputError, match="lacks data_batch_4"):
        official.load("cifar10", tmp_path, check=False)
    (tmp_path / "cifar-100-binary").mkdir()
    (tmp_path / "cifar-100-binary" / "train.bin").write_bytes(bytes(3073))
    (tmp_path / "cifar-100-binary" / "fine_label_names.txt").write_text("a")
    with pytest.raises(InputError, match="3,073 bytes, expected a multiple of 3074"):
        official.load("cifar100", tmp_path, check=False)


def test_a_cut_off_tar_file_cannot_be_unpacked(tmp_path):
    write_cifar10(tmp_path / "folder", python2)
    packed(tmp_path / "folder", tmp_path / "cifar-10-python.tar.gz")
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="cannot be unpacked"):
        official.load("cifar10", tmp_path, check=False)


def write_human_labels(path, columns):
    """As torch saves a mapping of arrays and lists: a zip file with one pickle of protocol 2."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(columns, protocol=2))
        file.writestr("archive/version", "3\n")


@pytest.fixture
def cifar10n(tmp_path):
    """Ten images; each column of labels has its first one wrong in its own way."""
    write_cifar10(tmp_path / "cifar-10-batches-py", python2)
    true = np.array([1, 0, 2, 1, 3, 2, 4, 3, 5, 4])
    names = ["aggre_label", "random_label1", "random_label2", "random_label3", "worse_label"]
    columns = {"clean_label": true}
    for wrong, name in enumerate(names, 5):
        columns[name] = np.array([wrong, *true[1:]])
    write_human_labels(tmp_path / "cifar-n" / "CIFAR-10_human.pt", columns)
    return tmp_path


@pytest.mark.parametrize(
    ("column", "first"), [(None, 5), ("aggre", 5), ("random1", 6), ("random2", 7), ("random3", 8), ("worse", 9)]
)
def test_every_column_of_human_labels_can_be_chosen(cifar10n, column, first):
    train = official.load("cifar10n", cifar10n, column=column, check=False)
    assert train.labels.tolist() == [first, 0, 2, 1, 3, 2, 4, 3, 5, 4]
    assert train.true_labels.tolist() == [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]
    assert train.images[0, 1, 2, 0] == 11


def test_the_test_set_of_human_labels_is_that_of_cifar(cifar10n):
    test = official.load("cifar10n", cifar10n, "test", check=False)
    assert (test.labels.tolist(), test.true_labels) == ([9], None)


def test_torch_saves_human_labels_in_the_layout_written_here(cifar10n):
    import torch

    path = cifar10n / "cifar-n" / "CIFAR-10_human.pt"
    true = np.array([1, 0, 2, 1, 3, 2, 4, 3, 5, 4])
    torch.save({"clean_label": true, "worse_label": true[::-1].copy()}, path)
    train = official.load("cifar10n", cifar10n, column="worse", check=False)
    assert train.labels.tolist() == true[::-1].tolist()
    with pytest.raises(InputError, match="lacks aggre_label; it has clean_label, worse_label"):
        official.load("cifar10n", cifar10n, check=False)


def test_human_labels_of_cifar100_are_fine_or_coarse(tmp_path):
    write_cifar100(tmp_path / "cifar-100-python", python2)
    columns = {
        "clean_label": np.array([99, 5, 7]),
        "noisy_label": np.array([99, 6, 7]),
        "clean_coarse_label": [19, 1, 2],  # lists, as they are published
        "noisy_coarse_label": [0, 1, 2],
    }
    write_human_labels(tmp_path / "cifar-10-100n" / "CIFAR-100_human.pt", columns)
    fine = official.load("cifar100n", tmp_path, check=False)
    assert (fine.labels.tolist(), fine.true_labels.tolist()) == ([99, 6, 7], [99, 5, 7])
    coarse = official.load("cifar100n", tmp_path, column="coarse", check=False)
    assert (coarse.labels.tolist(), coarse.true_labels.tolist()) == ([0, 1, 2], [19, 1, 2])
    with pytest.raises(InputError, match="cifar100n has no labels 'worse'; choose from fine, coarse"):
        official.load("cifar100n", tmp_path, column="worse")


def test_images_in_another_order_than_the_human_labels_are_refused(cifar10n):
    first, second = (cifar10n / "cifar-10-batches-py" / f"data_batch_{number}" for number in (1, 2))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    with pytest.raises(InputError, match="its images come in another order; use the Python version"):
        official.load("cifar10n", cifar10n, check=False)


def test_human_labels_without_images_and_damaged_ones_are_refused(cifar10n, tmp_path):
    (cifar10n / "cifar-n" / "CIFAR-10_human.pt").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match="cannot be read as a file saved by torch"):
        official.load("cifar10n", cifar10n, check=False)
    (cifar10n / "cifar-10-batches-py").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not the images of CIFAR-10 in"):
        official.load("cifar10n", cifar10n, check=False)
