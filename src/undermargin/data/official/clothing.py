"""Clothing1M: lists of files with noisy labels and, for validation and test, with those of experts."""

from pathlib import Path

import numpy as np

from undermargin.data.official.archives import Folder, Members
from undermargin.data.official.class_files import class_files, class_folders
from undermargin.data.official.record import OfficialSet, Request
from undermargin.data.official.webvision import read_list
from undermargin.errors import InputError

SUBSET = 100_000
PLACES = ("clothing1m", "Clothing1M", "clothing1M")
NAMES = "category_names_eng.txt"
LISTS = {"train": "noisy_train_key_list.txt", "val": "clean_val_key_list.txt", "test": "clean_test_key_list.txt"}
LABELS = {"train": "noisy_label_kv.txt", "val": "clean_label_kv.txt", "test": "clean_label_kv.txt"}


def locate(root: Path) -> Path | None:
    """The folder with the lists, or with class folders in `train/`."""
    return _place(root, PLACES)


def locate_subset(root: Path) -> Path | None:
    """The folder of the subset as class folders, or that of all images."""
    return _place(root, ("clothing100k", "Clothing100K", *PLACES))


def _place(root: Path, names: tuple[str, ...]) -> Path | None:
    there = [root / name for name in names if any((root / name / mark).exists() for mark in (LABELS["train"], "train"))]
    return there[0] if there else None


def load(path: Path, request: Request) -> OfficialSet:
    """Files and labels; images of the validation and the test set are left out of the training set."""
    if (path / LABELS["train"]).is_file():
        return _listed(path, request)
    folder = Folder(path)
    classes = class_folders(folder, "train/")
    files, labels = class_files(folder, f"{request.split}/", classes)
    return OfficialSet(files, labels, classes, found={"path": str(path), "format": "class folders"})


def load_subset(path: Path, request: Request) -> OfficialSet:
    """100,000 images of the training set, drawn from a seed: which ones the paper took is not known."""
    whole = load(path, request)
    if request.split != "train" or len(whole) <= SUBSET:
        return whole
    drawn = np.random.default_rng(request.seed).choice(len(whole), SUBSET, replace=False)
    return whole.subset(np.sort(drawn))


def _listed(path: Path, request: Request) -> OfficialSet:
    files = _lines(path / LISTS[request.split])
    if request.split == "train":
        held_out = {file for split in ("val", "test") for file in _lines(path / LISTS[split])}
        files = [file for file in files if file not in held_out]
    by_file = dict(zip(*read_list(path / LABELS[request.split]), strict=True))
    unlabeled = [file for file in files if file not in by_file]
    if unlabeled:
        raise InputError(
            f"{len(unlabeled)} files of {LISTS[request.split]} have no label in {LABELS[request.split]}, "
            f"the first is {unlabeled[0]}; get the lists again"
        )
    labels = np.array([by_file[file] for file in files], np.int64)
    found = {"path": str(path), "format": "Clothing1M"}
    return OfficialSet(Members(Folder(path), files), labels, _lines(path / NAMES), found=found)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError(f"there is no {path}; get it again")
    return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
