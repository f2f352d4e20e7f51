"""WebVision 1.0, all of it or its first 50 classes: as lists of files, or as class folders."""

from pathlib import Path

import numpy as np

from undermargin.data.official.archives import Folder, Members
from undermargin.data.official.class_files import class_files, class_folders
from undermargin.data.official.record import OfficialSet, Request
from undermargin.data.samples import Labels
from undermargin.errors import InputError

FEW = 50
PLACES = ("webvision", "WebVision", "webvision1.0")
TRAIN_LISTS = {"info/train_filelist_google.txt": "google/", "info/train_filelist_flickr.txt": "flickr/"}
TEST_LIST = "info/val_filelist.txt"
TEST_FOLDERS = ("val_images_256/", "val_images/", "val/")


def locate(root: Path) -> Path | None:
    """The folder with `info/`, or with class folders in `train/`."""
    return _place(root, PLACES)


def locate_few(root: Path) -> Path | None:
    """The folder of the first 50 classes, or of all."""
    return _place(root, ("webvision50", "WebVision50", *PLACES))


def _place(root: Path, names: tuple[str, ...]) -> Path | None:
    there = [root / name for name in names if (root / name / "info").is_dir() or (root / name / "train").is_dir()]
    return there[0] if there else None


def load(path: Path, request: Request) -> OfficialSet:
    """Files and labels; "test" is the published validation set."""
    return _listed(path, request) if (path / "info").is_dir() else _foldered(path, request)


def load_few(path: Path, request: Request) -> OfficialSet:
    """The first 50 classes, from Google and Flickr together."""
    whole = load(path, request)
    few = whole.subset(np.flatnonzero(whole.labels < FEW))
    return OfficialSet(few.images, few.labels, whole.class_names[:FEW], found=whole.found)


def _foldered(path: Path, request: Request) -> OfficialSet:
    folder = Folder(path)
    classes = class_folders(folder, "train/")
    files, labels = class_files(folder, "train/" if request.split == "train" else "val/", classes)
    return OfficialSet(files, labels, classes, found={"path": str(path), "format": "class folders"})


def _listed(path: Path, request: Request) -> OfficialSet:
    names: list[str] = []
    labels: list[Labels] = []
    if request.split == "train":
        lists: dict[str, tuple[str, ...]] = {
            name: ("", folder) for name, folder in TRAIN_LISTS.items() if (path / name).is_file()
        }
        lists = lists or {"info/train_filelist_all.txt": ("",)}
    else:
        lists = {TEST_LIST: ("", *TEST_FOLDERS)}
    for name, folders in lists.items():
        some, numbers = read_list(path / name)
        prefix = _prefix(path, some[0], folders)
        names += [prefix + file for file in some]
        labels.append(numbers)
    found = {"path": str(path), "format": "WebVision"}
    return OfficialSet(Members(Folder(path), names), np.concatenate(labels), _titles(path), found=found)


def read_list(path: Path) -> tuple[list[str], Labels]:
    """Lines of a file and the number of its class; file names may hold spaces and commas."""
    if not path.is_file():
        raise InputError(f"there is no {path}; get it again")
    lines = [line.rpartition(" ") for line in path.read_text("utf-8").splitlines() if line]
    strange = [number for number, (file, _, label) in enumerate(lines, 1) if not file or not label.isdecimal()]
    if strange or not lines:
        raise InputError(
            f"{path} has no file and label in line {strange[0] if strange else 1}; expected both, as: a.jpg 7"
        )
    return [file for file, _, _ in lines], np.array([int(label) for _, _, label in lines], np.int64)


def _prefix(path: Path, file: str, folders: tuple[str, ...]) -> str:
    """Lists name files from the data set's folder or from one in it; the first file tells."""
    for folder in folders:
        if (path / (folder + file)).is_file():
            return folder
    tried = ", ".join(str(path / (folder + file)) for folder in folders)
    raise InputError(f"the images are not there: tried {tried}")


def _titles(path: Path) -> list[str]:
    """Each class by its number in WordNet and its first name."""
    if not (path / "info/synsets.txt").is_file():
        raise InputError(f"there is no {path / 'info/synsets.txt'}, the list of the classes; get it again")
    lines = (path / "info/synsets.txt").read_text("utf-8").splitlines()
    return [line.split(",")[0].strip() for line in lines if line.strip()]
