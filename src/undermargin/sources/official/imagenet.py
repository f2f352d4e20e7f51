"""ImageNet (ILSVRC 2012): class folders, the published tar files, or Kaggle's layout."""

import io
from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import Archive, Folder, Members, Tar, read_members
from undermargin.sources.official.checksums import check_md5
from undermargin.sources.official.class_files import class_files, class_folders
from undermargin.sources.official.lists import read_lines
from undermargin.sources.official.record import OfficialSet, Request, first_there, first_with

PLACES = ("imagenet", "ImageNet", "ILSVRC2012")
KAGGLE = "ILSVRC/Data/CLS-LOC"
TRAIN_TAR, VAL_TAR = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
DEVKIT, DEVKIT_TAR = "ILSVRC2012_devkit_t12/data", "ILSVRC2012_devkit_t12.tar.gz"
SYNSETS, GROUND_TRUTH = "meta.mat", "ILSVRC2012_validation_ground_truth.txt"
MAPPING, SOLUTION = "LOC_synset_mapping.txt", "LOC_val_solution.csv"
MD5 = {TRAIN_TAR: "1d675b47", VAL_TAR: "29b22e29", DEVKIT_TAR: "fa75699e"}


def locate(root: Path) -> Path | None:
    """The folder with the training set; `root` itself only if it holds the published tar file or Kaggle's folder."""
    marks = (TRAIN_TAR, f"{KAGGLE}/train")
    return first_with(root, PLACES, (*marks, "train")) or first_with(root, ["."], marks)


def load(path: Path, request: Request) -> OfficialSet:
    """Files and labels; "test" is the published validation set. Classes are numbered in order of WordNet number."""
    is_train = request.split == "train"
    archive = _train(path, request) if is_train else _val(path, request)
    titles = _titles(path, request)
    if not titles:
        titles = {wnid: wnid for wnid in class_folders(archive if is_train else _train(path, request), "")}
    classes = sorted(titles)
    if is_train or any("/" in name for name in archive.names):
        files, labels = class_files(archive, "", classes)
    else:
        files, labels = _flat(path, archive, classes, request)
    found = {"path": str(path), "format": "ImageNet"}
    return OfficialSet(files, labels, [titles[wnid] for wnid in classes], found=found)


def _train(path: Path, request: Request) -> Archive:
    folder = first_there(path, ["train", f"{KAGGLE}/train"])
    return Folder(folder) if folder else _tar(path / TRAIN_TAR, request)


def _val(path: Path, request: Request) -> Archive:
    folder = first_there(path, ["val", f"{KAGGLE}/val"])
    if folder is None and not (path / VAL_TAR).is_file():
        raise InputError(f"{path} has neither val/ nor {VAL_TAR}; download one of them")
    return Folder(folder) if folder else _tar(path / VAL_TAR, request)


def _tar(path: Path, request: Request) -> Tar:
    if request.check:
        check_md5(path, [MD5[path.name]])
    return Tar(path)


def _flat(path: Path, val: Archive, classes: list[str], request: Request) -> tuple[Members, Labels]:
    """The validation set as one folder of files; their classes are in a file of Kaggle's, or in the devkit."""
    names = [name for name in val.names if name.lower().endswith(".jpeg")]
    if (path / SOLUTION).is_file():
        rows = (line.partition(",") for line in read_lines(path / SOLUTION))  # image, then class and box of each object
        by_image = {image: prediction.split(" ")[0] for image, _, prediction in rows}
        wnids = [by_image.get(Path(name).stem, "none") for name in names]
    else:
        devkit = _devkit(path, [SYNSETS, GROUND_TRUTH], request)
        if devkit is None:
            raise InputError(f"{path} has the validation images without their classes; put {DEVKIT_TAR} there")
        by_number = {b"%d" % number: wnid for wnid, number, _ in read_synsets(devkit[SYNSETS], path / SYNSETS)}
        wnids = [by_number.get(line, "none") for line in devkit[GROUND_TRUTH].split()]
    unknown = sorted(set(wnids) - set(classes))
    if unknown or len(wnids) != len(names):
        raise InputError(
            f"{path} has {len(names)} validation images and {len(wnids)} labels, {len(unknown)} of unknown classes; "
            "download the files again"
        )
    numbers = {wnid: number for number, wnid in enumerate(classes)}
    return Members(val, names), np.array([numbers[wnid] for wnid in wnids], np.int64)


def _titles(path: Path, request: Request) -> dict[str, str]:
    """WordNet number and first name of each class, if a file lists them."""
    if (path / MAPPING).is_file():
        return {line.split()[0]: line.split(",")[0] for line in read_lines(path / MAPPING)}
    devkit = _devkit(path, [SYNSETS], request)
    if devkit is None:
        return {}
    return {wnid: f"{wnid} {words.split(',')[0]}" for wnid, _, words in read_synsets(devkit[SYNSETS], path / SYNSETS)}


def _devkit(path: Path, names: list[str], request: Request) -> dict[str, bytes] | None:
    place = first_there(path, [DEVKIT, DEVKIT_TAR])
    if place is None:
        return None
    if request.check and place.is_file():
        check_md5(place, [MD5[place.name]])
    return read_members(place, names)


def read_synsets(data: bytes, path: Path) -> list[tuple[str, int, str]]:
    """WordNet number, ILSVRC number and words of every class without subclasses."""
    from scipy.io import loadmat

    try:
        synsets = np.atleast_1d(loadmat(io.BytesIO(data), squeeze_me=True, struct_as_record=False)["synsets"])
        leaves = [synset for synset in synsets if int(synset.num_children) == 0]
        return [(str(synset.WNID), int(synset.ILSVRC2012_ID), str(synset.words)) for synset in leaves]
    except Exception as error:  # SciPy raises all kinds of exceptions for damaged files
        raise InputError(f"{path} cannot be read: {error}; download it again") from None
