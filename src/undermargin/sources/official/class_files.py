"""Images in one folder a class, in a folder or in an archive, as ImageNet and its kin are laid out."""

from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import Archive, Folder, Members
from undermargin.sources.official.record import OfficialSet
from undermargin.sources.pictures import SUFFIXES


def class_folders(archive: Archive, split: str) -> list[str]:
    """The classes in alphabetical order: the folders that hold images below `split`."""
    return sorted({name.removeprefix(split).split("/")[0] for name in _images(archive, split)})


def class_files(archive: Archive, split: str, classes: list[str]) -> tuple[Members, Labels]:
    """Every image below `split`, and the number of its class; one in another folder is an error."""
    names = _images(archive, split)
    numbers = {name: number for number, name in enumerate(classes)}
    folders = [name.removeprefix(split).split("/")[0] for name in names]
    strange = sorted(set(folders) - set(classes))
    if strange:
        raise InputError(f"{split} has folders of no known class: {', '.join(strange[:5])}")
    if not names:
        raise InputError(f"there are no images in {split}CLASS/; get the data set again")
    empty = sorted(set(classes) - set(folders))
    if empty:
        raise InputError(
            f"{split}CLASS/ has no images of {len(empty)} of the {len(classes)} classes, the first is {empty[0]}; "
            "get the data set again"
        )
    return Members(archive, names), np.array([numbers[folder] for folder in folders], np.int64)


def load_class_folders(path: Path, split: str) -> OfficialSet:
    """A part of a data set as the paper's authors laid it out: train/CLASS/NAME, val/CLASS/NAME."""
    folder = Folder(path)
    classes = class_folders(folder, "train/")
    files, labels = class_files(folder, f"{split}/", classes)
    return OfficialSet(files, labels, classes, found={"path": str(path), "format": "class folders"})


def _images(archive: Archive, split: str) -> list[str]:
    return [
        name
        for name in archive.names
        if name.startswith(split) and "/" in name.removeprefix(split) and name.lower().endswith(SUFFIXES)
    ]
