"""Clothing1M: lists of files with noisy labels and, for validation and test, with labels by experts."""

from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.official.archives import Folder, Members
from undermargin.sources.official.class_files import load_class_folders
from undermargin.sources.official.lists import check_present, read_labels, read_lines
from undermargin.sources.official.record import OfficialSet, Request, first_with

SUBSET = 100_000
PLACES = ("clothing1m", "Clothing1M", "clothing1M")
NAMES = "category_names_eng.txt"
LISTS = {"train": "noisy_train_key_list.txt", "val": "clean_val_key_list.txt", "test": "clean_test_key_list.txt"}
LABELS = {"train": "noisy_label_kv.txt", "val": "clean_label_kv.txt", "test": "clean_label_kv.txt"}


def locate(root: Path) -> Path | None:
    """The folder with the lists, or with class folders in `train/`."""
    return first_with(root, PLACES, (LABELS["train"], "train"))


def locate_subset(root: Path) -> Path | None:
    """The folder of the subset as class folders, or that of all images."""
    return first_with(root, ("clothing100k", "Clothing100K", *PLACES), (LABELS["train"], "train"))


def load(path: Path, request: Request) -> OfficialSet:
    """Files and labels; images of the validation and test sets are left out of the training set."""
    has_lists = (path / LABELS["train"]).is_file()
    return _listed(path, request) if has_lists else load_class_folders(path, request.split)


def load_subset(path: Path, request: Request) -> OfficialSet:
    """100,000 images of the training set, drawn with a seed: the paper's subset is not published."""
    whole = load(path, request)
    if request.split != "train" or len(whole) <= SUBSET:
        return whole
    drawn = np.random.default_rng(request.seed).choice(len(whole), SUBSET, replace=False)
    return whole.subset(np.sort(drawn))


def _listed(path: Path, request: Request) -> OfficialSet:
    files = read_lines(path / LISTS[request.split])
    if request.split == "train":
        held_out = {file for split in ("val", "test") for file in read_lines(path / LISTS[split])}
        files = [file for file in files if file not in held_out]
    by_file = dict(zip(*read_labels(path / LABELS[request.split]), strict=True))
    unlabeled = [file for file in files if file not in by_file]
    if unlabeled:
        raise InputError(
            f"{len(unlabeled)} files of {LISTS[request.split]} have no label in {LABELS[request.split]}, "
            f"the first is {unlabeled[0]}; download the lists again"
        )
    check_present(path, files, "unpack images/*.tar in their folder")
    labels = np.array([by_file[file] for file in files], np.int64)
    found = {"path": str(path), "format": "Clothing1M"}
    return OfficialSet(Members(Folder(path), files), labels, read_lines(path / NAMES), found=found)
