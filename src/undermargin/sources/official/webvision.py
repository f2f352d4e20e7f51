"""WebVision 1.0, complete or its first 50 classes: as lists of files, or as class folders."""

from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import Folder, Members
from undermargin.sources.official.class_files import load_class_folders
from undermargin.sources.official.lists import check_present, read_labels, read_lines
from undermargin.sources.official.record import OfficialSet, Request, first_with

FEW = 50
PLACES = ("webvision", "WebVision", "webvision1.0")
TRAIN_LISTS = {"info/train_filelist_google.txt": "google/", "info/train_filelist_flickr.txt": "flickr/"}
WHOLE_LIST = "info/train_filelist_all.txt"  # both in one
TEST_LIST = "info/val_filelist.txt"
TEST_FOLDERS = ("val_images_256/", "val_images/", "val/")


def locate(root: Path) -> Path | None:
    """The folder with `info/`, or with class folders in `train/`."""
    return first_with(root, PLACES, ("info", "train"))


def locate_few(root: Path) -> Path | None:
    """The folder of the first 50 classes, or of all."""
    return first_with(root, ("webvision50", "WebVision50", *PLACES), ("info", "train"))


def load(path: Path, request: Request) -> OfficialSet:
    """Files and labels; "test" is the published validation set."""
    if (path / "info").is_dir():
        return _listed(path, request)
    return load_class_folders(path, "train" if request.split == "train" else "val")


def load_few(path: Path, request: Request) -> OfficialSet:
    """The first 50 classes, from Google and Flickr together."""
    whole = load(path, request)
    few = whole.subset(np.flatnonzero(whole.labels < FEW))
    return OfficialSet(few.images, few.labels, whole.class_names[:FEW], found=whole.found)


def _listed(path: Path, request: Request) -> OfficialSet:
    names: list[str] = []
    labels: list[Labels] = []
    lists: dict[str, tuple[str, ...]]
    if request.split == "train":
        is_whole = (path / WHOLE_LIST).is_file() and not all((path / name).is_file() for name in TRAIN_LISTS)
        lists = {WHOLE_LIST: ("",)} if is_whole else {name: ("", folder) for name, folder in TRAIN_LISTS.items()}
    else:
        lists = {TEST_LIST: ("", *TEST_FOLDERS)}
    for name, folders in lists.items():
        some, numbers = read_labels(path / name)
        prefix = _prefix(path, some[0], folders) if some else ""
        names += [prefix + file for file in some]
        labels.append(numbers)
    check_present(path, names, "unpack them beside info/")
    titles = [line.split(",")[0] for line in read_lines(path / "info/synsets.txt")]  # WordNet number and first name
    found = {"path": str(path), "format": "WebVision"}
    return OfficialSet(Members(Folder(path), names), np.concatenate(labels), titles, found=found)


def _prefix(path: Path, file: str, folders: tuple[str, ...]) -> str:
    """The folder that the names in a list are relative to, found by looking for the first file."""
    for folder in folders:
        if (path / (folder + file)).is_file():
            return folder
    tried = ", ".join(str(path / (folder + file)) for folder in folders)
    raise InputError(f"the images are missing: tried {tried}; unpack them beside info/")
