"""Tiny ImageNet, WebVision, Clothing1M and ImageNet: a few small images in the published layouts."""

import io
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from undermargin.errors import InputError
from undermargin.sources import official
from undermargin.sources.official import clothing
from undermargin.sources.samples import Reading


def write_image(path, value, *, mode="RGB", side=64):
    """An image of one grey, so that its pixels tell which it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), (value, value, value)).convert(mode).save(path, "PNG")  # whatever it is called


def greys(part):
    """The grey of every image, read one after another."""
    return [
        int(np.asarray(Image.open(io.BytesIO(part.images.read(row))).convert("L"))[0, 0]) for row in range(len(part))
    ]


def lines(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")


@pytest.fixture
def tiny(tmp_path):
    """Two classes, whose order in wnids.txt is not the alphabetical one."""
    root = tmp_path / "root" / "tiny-imagenet-200"
    lines(root / "wnids.txt", ["n02", "n01"])
    lines(root / "words.txt", ["n01\tgoldfish, Carassius auratus", "n02\tbee", "n03\tnever seen"])
    for number, wnid in enumerate(["n01", "n02"]):
        for file in (0, 1):
            write_image(
                root / f"train/{wnid}/images/{wnid}_{file}.JPEG", 10 * number + file, mode="L" if file else "RGB"
            )
        lines(root / f"train/{wnid}/{wnid}_boxes.txt", [f"{wnid}_0.JPEG\t0\t0\t63\t63"])
    write_image(root / "val/images/val_0.JPEG", 50)
    write_image(root / "val/images/val_1.JPEG", 60)
    lines(root / "val/val_annotations.txt", ["val_0.JPEG\tn02\t0\t32\t44\t62", "val_1.JPEG\tn01\t0\t0\t63\t63"])
    write_image(root / "test/images/test_0.JPEG", 99)  # unlabelled, not read
    return root


def check_tiny(root):
    train, test = (official.load("tiny-imagenet", root, split) for split in ("train", "test"))
    assert train.class_names == ["n01 goldfish", "n02 bee"]  # numbered alphabetically
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert train.images.shape == (4, 64, 64, 3)
    assert train.images[:, 7, 7].tolist() == [[0] * 3, [1] * 3, [10] * 3, [11] * 3]
    assert test.labels.tolist() == [1, 0]
    assert test.images[:, 7, 7, 0].tolist() == [50, 60]


def test_tiny_imagenet_unpacked(tiny):
    check_tiny(tiny.parent)


def test_images_of_tiny_imagenet_keep_the_names_of_their_files(tiny):
    train = official.load("tiny-imagenet", tiny.parent)
    assert all((tiny / name).is_file() for name in train.ids)
    assert train.subset(np.array([2, 0])).ids == [train.ids[2], train.ids[0]]
    assert train.samples().ids == train.ids


def test_tiny_imagenet_from_a_zip_file(tiny):
    shutil.make_archive(str(tiny), "zip", tiny.parent, tiny.name)
    shutil.rmtree(tiny)
    check_tiny(tiny.parent)


def test_a_cut_version_from_a_tar_file(tiny):
    with tarfile.open(tiny.parent / "tiny-imagenet-20.tar", "w") as tar:
        tar.add(tiny, "tiny-imagenet-200")
    shutil.rmtree(tiny)
    check_tiny(tiny.parent)
    assert official.found(tiny.parent)["tiny-imagenet"].path.name == "tiny-imagenet-20.tar"


def test_tiny_imagenet_with_class_folders_for_validation(tiny):
    (tiny / "val/val_annotations.txt").unlink()
    for file, wnid in ((0, "n02"), (1, "n01")):
        (tiny / "val" / wnid).mkdir()
        (tiny / f"val/images/val_{file}.JPEG").rename(tiny / f"val/{wnid}/val_{file}.JPEG")
    test = official.load("tiny-imagenet", tiny.parent, "test")
    assert (test.labels.tolist(), test.images[:, 0, 0, 0].tolist()) == ([0, 1], [60, 50])


def test_damage_to_tiny_imagenet_is_named(tiny):
    root = tiny.parent
    lines(tiny / "val/val_annotations.txt", ["val_0.JPEG\tn07"])
    with pytest.raises(InputError, match=r"\['val_0.JPEG', 'n07'\], expected a file and one of the classes"):
        official.load("tiny-imagenet", root, "test")
    lines(tiny / "val/val_annotations.txt", [f"val_{number}.JPEG\tn01" for number in (0, 1, 2)])
    with pytest.raises(InputError, match=r"1 of 3 images cannot be read, the first is val/images/val_2.JPEG"):
        official.load("tiny-imagenet", root, "test")
    (tiny / "train/n02/images/n02_0.JPEG").write_bytes(b"")
    with pytest.raises(InputError, match=r"1 of 4 images cannot be read, the first is train/n02/images/n02_0.JPEG"):
        official.load("tiny-imagenet", root)
    (tiny / "train/n02").rename(tiny / "train/n09")
    with pytest.raises(InputError, match="folders that are not classes: n09"):
        official.load("tiny-imagenet", root)
    (tiny / "wnids.txt").unlink()
    with pytest.raises(InputError, match=r"no wnids.txt"):
        official.load("tiny-imagenet", root)


def test_a_class_without_images_is_an_error_not_a_smaller_data_set(tiny):
    shutil.rmtree(tiny / "train/n02/images")
    with pytest.raises(InputError, match=r"train/CLASS/ has no images of 1 of the 2 classes, the first is n02"):
        official.load("tiny-imagenet", tiny.parent)


def test_tiny_imagenet_is_counted_without_being_read(tiny):
    assert official.found(tiny.parent)["tiny-imagenet"].counts == {"train": 4, "test": 2}
    shutil.make_archive(str(tiny), "zip", tiny.parent, tiny.name)
    shutil.rmtree(tiny)
    assert official.found(tiny.parent)["tiny-imagenet"].counts == {"train": 4, "test": 2}


def test_a_damaged_zip_file_and_one_that_lacks_a_file_are_named(tiny):
    lines(tiny / "val/val_annotations.txt", [f"val_{number}.JPEG\tn01" for number in (0, 1, 2)])
    path = tiny.parent / "tiny-imagenet-200.zip"
    shutil.make_archive(str(tiny), "zip", tiny.parent, tiny.name)
    shutil.rmtree(tiny)
    with pytest.raises(InputError, match=r"1 of 3 images cannot be read, .*zip lacks .*val_2.JPEG"):
        official.load("tiny-imagenet", tiny.parent, "test")
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("tiny-imagenet-200/wnids.txt").header_offset
    data = bytearray(path.read_bytes())
    start = place + 30 + len("tiny-imagenet-200/wnids.txt")
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"wnids.txt in .*tiny-imagenet-200.zip is damaged: .*; download it again"):
        official.load("tiny-imagenet", tiny.parent)


@pytest.mark.parametrize("name", ["tiny-imagenet-200.tar", "tiny-imagenet-200.zip"])
def test_a_file_that_is_no_archive_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive" * 100)
    with pytest.raises(InputError, match=f"cannot be read as a {name[-3:]} file"):
        official.load("tiny-imagenet", tmp_path)


def write_webvision(root, *, inside):
    """Labels 0, 49, 50 and 51; `inside`: whether lists name files from the folders of their sources."""
    lines(root / "info/synsets.txt", [f"n{number:02} first {number}, second" for number in range(52)])
    for source, rows in {
        "google": [("q0001/a b.jpg", 0), ("q0002/b.jpg", 50)],
        "flickr": [("q0001/c,d.jpg", 49)],
    }.items():
        prefix = "" if inside else f"{source}/"
        lines(root / f"info/train_filelist_{source}.txt", [f"{prefix}{file} {label}" for file, label in rows])
        for file, label in rows:
            write_image(root / source / file, label)
    lines(root / "info/val_filelist.txt", ["val000001.jpg 51", "val000002.jpg 1"])
    write_image(root / "val_images_256/val000001.jpg", 51)
    write_image(root / "val_images_256/val000002.jpg", 1)


@pytest.mark.parametrize("inside", [True, False])
def test_webvision_by_its_lists(tmp_path, inside):
    write_webvision(tmp_path / "webvision", inside=inside)
    train = official.load("webvision", tmp_path)
    assert train.images.ids == ["google/q0001/a b.jpg", "google/q0002/b.jpg", "flickr/q0001/c,d.jpg"]
    assert train.labels.tolist() == greys(train) == [0, 50, 49]
    assert train.class_names[50] == "n50 first 50"
    test = official.load("webvision", tmp_path, "test")
    assert test.labels.tolist() == greys(test) == [51, 1]


def test_the_first_50_classes_of_webvision(tmp_path):
    write_webvision(tmp_path / "webvision", inside=False)
    train, test = (official.load("webvision50", tmp_path, split) for split in ("train", "test"))
    assert train.labels.tolist() == greys(train) == [0, 49]
    assert test.labels.tolist() == greys(test) == [1]
    assert len(train.class_names) == len(test.class_names) == 50


def test_webvision_as_class_folders(tmp_path):
    for split, value in (("train", 3), ("val", 4)):
        for number, wnid in enumerate(("n01", "n02")):
            write_image(tmp_path / f"webvision50/{split}/{wnid}/x.jpg", 10 * number + value)
    train, test = (official.load("webvision50", tmp_path, split) for split in ("train", "test"))
    assert (train.class_names, train.labels.tolist(), greys(train)) == (["n01", "n02"], [0, 1], [3, 13])
    assert (test.labels.tolist(), greys(test)) == ([0, 1], [4, 14])


def test_webvision_without_its_images_or_with_a_strange_list(tmp_path):
    root = tmp_path / "webvision"
    write_webvision(root, inside=False)
    lines(root / "info/val_filelist.txt", ["val000001.jpg 51", "val000002.jpg"])
    with pytest.raises(InputError, match="no file and label in line 2"):
        official.load("webvision", tmp_path, "test")
    (root / "info/val_filelist.txt").write_bytes(b"caf\xe9.jpg 1\n")
    with pytest.raises(InputError, match=r"val_filelist.txt is not UTF-8"):
        official.load("webvision", tmp_path, "test")
    lines(root / "info/val_filelist.txt", ["val000009.jpg 51"])
    with pytest.raises(InputError, match=r"tried .*val000009.jpg, .*val_images_256/val000009.jpg"):
        official.load("webvision", tmp_path, "test")
    lines(root / "info/train_filelist_google.txt", ["google/q0001/a b.jpg 52"])
    with pytest.raises(InputError, match=r"labels from 49 to 52, expected 0..51"):
        official.load("webvision", tmp_path)


def test_webvision_wants_the_lists_of_both_its_sources_or_the_one_of_all(tmp_path):
    root = tmp_path / "webvision"
    write_webvision(root, inside=False)
    whole = official.load("webvision", tmp_path).labels.tolist()
    names = [(root / f"info/train_filelist_{source}.txt").read_text() for source in ("google", "flickr")]
    (root / "info/train_filelist_flickr.txt").unlink()
    with pytest.raises(InputError, match=r"there is no .*train_filelist_flickr.txt"):
        official.load("webvision", tmp_path)
    (root / "info/train_filelist_all.txt").write_text("".join(names))
    assert official.load("webvision", tmp_path).labels.tolist() == whole


def test_a_folder_that_was_not_unpacked_is_noticed(tmp_path):
    write_webvision(tmp_path / "webvision", inside=False)
    shutil.rmtree(tmp_path / "webvision/google/q0002")
    with pytest.raises(InputError, match=r"images of 1 of 3 folders are missing, the first is .*q0002/b.jpg; unpack"):
        official.load("webvision", tmp_path)


def file(number):
    return f"images/0/00/{number},867148000.jpg"


@pytest.fixture
def clothes(tmp_path):
    """Six noisy images, of which the last two are also in the validation and the test set."""
    root = tmp_path / "clothing1m"
    lines(root / "category_names_eng.txt", ["T-Shirt", "Shirt", "Knitwear"])
    lines(root / "noisy_label_kv.txt", [f"{file(number)} {number % 3}" for number in range(6)])
    lines(root / "clean_label_kv.txt", [f"{file(4)} 2", f"{file(5)} 1"])
    lines(root / "noisy_train_key_list.txt", [file(number) for number in range(6)])
    lines(root / "clean_val_key_list.txt", [file(4)])
    lines(root / "clean_test_key_list.txt", [file(5)])
    for number in range(6):
        write_image(root / file(number), number)
    return tmp_path


def test_clothing1m_leaves_validation_and_test_images_out_of_training(clothes):
    train, val, test = (official.load("clothing1m", clothes, split) for split in ("train", "val", "test"))
    assert (train.labels.tolist(), greys(train)) == ([0, 1, 2, 0], [0, 1, 2, 3])
    assert (val.labels.tolist(), greys(val)) == ([2], [4])
    assert (test.labels.tolist(), greys(test)) == ([1], [5])
    assert train.class_names == ["T-Shirt", "Shirt", "Knitwear"]


def test_the_subset_of_clothing1m_is_drawn_from_a_seed(clothes, monkeypatch):
    monkeypatch.setattr(clothing, "SUBSET", 2)
    drawn = {seed: official.load("clothing100k", clothes, seed=seed) for seed in range(8)}
    assert all(len(part) == 2 and part.labels.tolist() == [grey % 3 for grey in greys(part)] for part in drawn.values())
    assert len({tuple(greys(part)) for part in drawn.values()}) > 1
    assert greys(official.load("clothing100k", clothes, seed=3)) == greys(drawn[3])
    assert greys(official.load("clothing100k", clothes, "test")) == [5]


def test_clothing1m_with_a_file_that_has_no_label_or_leads_elsewhere(clothes):
    lines(clothes / "clothing1m/noisy_train_key_list.txt", [file(0), file(7), file(8)])
    with pytest.raises(InputError, match=r"2 files of noisy_train_key_list.txt have no label .* first is .*/7,8"):
        official.load("clothing1m", clothes)
    lines(clothes / "clothing1m/noisy_train_key_list.txt", ["../secret.jpg"])
    lines(clothes / "clothing1m/noisy_label_kv.txt", ["../secret.jpg 1"])
    write_image(clothes / "secret.jpg", 1)
    with pytest.raises(InputError, match="secret.jpg is not below"):
        official.load("clothing1m", clothes).images.read(0)
    (clothes / "clothing1m/clean_val_key_list.txt").unlink()
    with pytest.raises(InputError, match=r"there is no .*clean_val_key_list.txt"):
        official.load("clothing1m", clothes)


def test_clothing1m_whose_images_are_still_packed_says_so(clothes):
    shutil.rmtree(clothes / "clothing1m/images")
    with pytest.raises(InputError, match=r"images of 1 of 1 folders are missing, .* unpack images/\*.tar"):
        official.load("clothing1m", clothes)


def test_many_images_are_decoded_to_a_file_on_disk(clothes, tmp_path):
    (clothes / "clothing1m" / file(1)).write_bytes(b"")  # a quarter is too many to pass over
    train = official.load("clothing1m", clothes)
    reading = Reading(image_size=32, memory=0, spill=tmp_path / "pixels")
    with pytest.raises(InputError, match="1 of 4 images cannot be read"):
        train.samples(reading)
    write_image(clothes / "clothing1m" / file(1), 1)
    samples = train.samples(reading)
    assert (tmp_path / "pixels").stat().st_size == 4 * 32 * 32 * 3
    assert samples.inputs[[3, 1]][:, 5, 5, 0].tolist() == [3, 1]
    assert samples.labels.tolist() == [0, 1, 2, 0]
    assert samples.ids[3] == file(3)
    with pytest.raises(InputError, match="have many sizes; choose a side"):
        train.samples()


# three classes, whose order by ILSVRC number is not the alphabetical one; the fourth synset has others below it
SYNSETS = [("n03", 1, "kit fox"), ("n01", 2, "tench, Tinca"), ("n02", 3, "crane"), ("n00", 4, "thing")]


def write_devkit(root):
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")]
    rows = [(number, wnid, words, 3 if wnid == "n00" else 0) for wnid, number, words in SYNSETS]
    folder = root / "ILSVRC2012_devkit_t12" / "data"
    folder.mkdir(parents=True)
    savemat(folder / "meta.mat", {"synsets": np.array(rows, fields)[:, None]})
    lines(folder / "ILSVRC2012_validation_ground_truth.txt", ["3", "1", "2"])  # n02, n03, n01


def write_train(root):
    for number, wnid in enumerate(("n01", "n02", "n03")):
        write_image(root / f"{wnid}/{wnid}_7.JPEG", number)


def write_val(root):
    for number in (1, 2, 3):
        write_image(root / f"ILSVRC2012_val_0000000{number}.JPEG", number)


def check_imagenet(root, titles=("n01 tench", "n02 crane", "n03 kit fox")):
    train, test = (official.load("imagenet", root, split, check=False) for split in ("train", "test"))
    assert train.class_names == test.class_names == list(titles)
    assert train.labels.tolist() == greys(train) == [0, 1, 2]
    assert dict(zip(greys(test), test.labels.tolist(), strict=True)) == {1: 1, 2: 2, 3: 0}


def test_imagenet_as_class_folders(tmp_path):
    write_train(tmp_path / "imagenet/train")
    for number, wnid in ((1, "n02"), (2, "n03"), (3, "n01")):
        write_image(tmp_path / f"imagenet/val/{wnid}/ILSVRC2012_val_0000000{number}.JPEG", number)
    check_imagenet(tmp_path, ["n01", "n02", "n03"])


def test_imagenet_with_a_flat_validation_set_and_the_devkit(tmp_path):
    write_train(tmp_path / "imagenet/train")
    write_val(tmp_path / "imagenet/val")
    with pytest.raises(InputError, match=r"without their classes; put ILSVRC2012_devkit_t12.tar.gz there"):
        official.load("imagenet", tmp_path, "test")
    write_devkit(tmp_path / "imagenet")
    check_imagenet(tmp_path)
    lines(tmp_path / "imagenet/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", ["3", "9", "x"])
    with pytest.raises(InputError, match="3 validation images and 3 labels, 1 of unknown classes"):
        official.load("imagenet", tmp_path, "test")


def tarred(folder, path, *, compressed=False):
    """The files of a folder, without the folder; the bytes of them in the order of their names."""
    with tarfile.open(path, "w:gz" if compressed else "w") as tar:
        for file in sorted(folder.iterdir()):
            tar.add(file, file.name)


@pytest.fixture
def tars(tmp_path):
    """The three published files: the first is a tar file of tar files."""
    root = tmp_path / "root"
    root.mkdir()
    write_train(tmp_path / "train")
    (tmp_path / "inner").mkdir()
    for folder in sorted((tmp_path / "train").iterdir()):
        tarred(folder, tmp_path / "inner" / f"{folder.name}.tar")
    tarred(tmp_path / "inner", root / "ILSVRC2012_img_train.tar")
    write_val(tmp_path / "val")
    tarred(tmp_path / "val", root / "ILSVRC2012_img_val.tar")
    write_devkit(tmp_path / "devkit")
    tarred(tmp_path / "devkit", root / "ILSVRC2012_devkit_t12.tar.gz", compressed=True)
    return root


def test_imagenet_is_read_from_its_tar_files(tars):
    check_imagenet(tars)
    train = official.load("imagenet", tars, check=False)
    assert train.images.ids[0] == "n01/n01_7.JPEG"
    samples = train.samples(Reading(image_size=32))  # from several threads
    assert samples.inputs[:, 0, 0, 0].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"ILSVRC2012_img_train.tar is not the published file: .* expected 1d675b47"):
        official.load("imagenet", tars)


def test_a_cut_off_tar_file_of_imagenet_says_so(tars):
    train = official.load("imagenet", tars, check=False)
    path = tars / "ILSVRC2012_img_train.tar"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="ends inside of n03/n03_7.JPEG"):
        train.images.read(2)
    with pytest.raises(InputError, match="cannot be read as a tar file: unexpected end of data"):
        official.load("imagenet", tars, check=False)


def test_imagenet_as_kaggle_has_it(tmp_path):
    write_train(tmp_path / "ILSVRC/Data/CLS-LOC/train")
    write_val(tmp_path / "ILSVRC/Data/CLS-LOC/val")
    lines(tmp_path / "LOC_synset_mapping.txt", ["n01 tench, Tinca tinca", "n02 crane", "n03 kit fox, Vulpes"])
    rows = [(2, "n03"), (1, "n02"), (3, "n01")]  # in no order
    solution = [f"ILSVRC2012_val_0000000{number},{wnid} 1 2 3 4 {wnid} 5 6 7 8" for number, wnid in rows]
    lines(tmp_path / "LOC_val_solution.csv", ["ImageId,PredictionString", *solution])
    check_imagenet(tmp_path)


def test_damaged_synsets_are_refused(tmp_path):
    write_train(tmp_path / "imagenet/train")
    write_devkit(tmp_path / "imagenet")
    (tmp_path / "imagenet/ILSVRC2012_devkit_t12/data/meta.mat").write_bytes(b"damaged" * 40)
    with pytest.raises(InputError, match=r"meta.mat cannot be read"):
        official.load("imagenet", tmp_path)
