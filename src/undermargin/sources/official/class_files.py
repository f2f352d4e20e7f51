"""Images in one folder per class, on disk or in an archive, as in ImageNet."""

from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import Archive, Folder, Members
from undermargin.sources.official.record import OfficialSet
from undermargin.sources.pictures import SUFFIXES


def class_folders(archive: Archive, split: str) -> list[str]:
    """The classes in alphabetical order: the folders below `split` that hold images."""
    return sorted({name.removeprefix(split).split("/")[0] for name in _images(archive, split)})


def class_files(archive: Archive, split: str, classes: list[str]) -> tuple[Members, Labels]:
    """Every image below `split` and its class number; a folder that is not a class is an error."""
    names = _images(archive, split)
    numbers = {name: number for number, name in enumerate(classes)}
    folders = [name.removeprefix(split).split("/")[0] for name in names]
    unknown = sorted(set(folders) - set(classes))
    if unknown:
        raise InputError(f"{split} has folders that are not classes: {', '.join(unknown[:5])}")
    if not names:
        raise InputError(f"there are no images in {split}CLASS/; download the data set again")
    empty = sorted(set(classes) - set(folders))
    if empty:
        raise InputError(
            f"{split}CLASS/ has no images of {len(empty)} of the {len(classes)} classes, the first is {empty[0]}; "
            "download the data set again"
        )
    return Members(archive, names), np.array([numbers[folder] for folder in folders], np.int64)


def load_class_folders(path: Path, split: str) -> OfficialSet:
    """One split in the layout of the paper's authors: train/CLASS/NAME, val/CLASS/NAME."""
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
