"""Tiny ImageNet, or a version with fewer classes: unpacked, or as one tar or zip file."""

from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels
from undermargin.sources.official.archives import Archive, Members, open_archive
from undermargin.sources.official.class_files import class_files
from undermargin.sources.official.record import OfficialSet, Request, decoded, first_there

SIDE = 64
PLACES = ("tiny-imagenet-200", "tiny-imagenet-200.zip", "tiny-imagenet-200.tar", "tiny-imagenet-20.tar")
SUFFIX = ".JPEG"
ANNOTATIONS = "val/val_annotations.txt"


def locate(root: Path) -> Path | None:
    """The folder or the archive."""
    return first_there(root, PLACES)


def load(path: Path, request: Request) -> OfficialSet:
    """Photos (samples, 64, 64, 3); "test" is the published validation set, as the test set has no labels."""
    archive = open_archive(path)
    lists = [name for name in archive.names if name.split("/")[-1] == "wnids.txt"]
    if not lists:
        raise InputError(f"{path} has no wnids.txt, the list of its classes; download it again")
    base = lists[0].removesuffix("wnids.txt")
    classes = sorted(
        archive.read(lists[0]).decode("utf-8", "replace").split()
    )  # alphabetical, as the paper's authors number them
    if request.split == "train":
        files, labels = class_files(archive, f"{base}train/", classes)
    elif base + ANNOTATIONS in archive.names:
        files, labels = _annotated(archive, base, classes)
    else:
        files, labels = class_files(archive, f"{base}val/", classes)
    found = {"path": str(path), "format": "Tiny ImageNet"}
    names = [name.removeprefix(base) for name in files.ids]
    return OfficialSet(decoded(files, SIDE), labels, _titles(archive, base, classes), found=found, names=names)


def count(path: Path) -> dict[str, int]:
    """Samples of each split."""
    names = open_archive(path).names
    parts = {"train": "train/", "test": "val/"}
    return {
        split: sum(f"/{part}" in f"/{name}" and name.endswith(SUFFIX) for name in names)
        for split, part in parts.items()
    }


def _annotated(archive: Archive, base: str, classes: list[str]) -> tuple[Members, Labels]:
    lines = [
        line.split("\t") for line in archive.read(base + ANNOTATIONS).decode("utf-8", "replace").splitlines() if line
    ]
    unknown = [line for line in lines if len(line) < 2 or line[1] not in classes]
    if unknown:
        raise InputError(
            f"{ANNOTATIONS} has the line {unknown[0]}, expected a file and one of the classes in wnids.txt"
        )
    files = Members(archive, [f"{base}val/images/{line[0]}" for line in lines])
    return files, np.array([classes.index(line[1]) for line in lines], np.int64)


def _titles(archive: Archive, base: str, classes: list[str]) -> list[str]:
    """WordNet number and first name of each class."""
    if f"{base}words.txt" not in archive.names:
        return classes
    lines = (line.partition("\t") for line in archive.read(f"{base}words.txt").decode("utf-8", "replace").splitlines())
    words = {wnid: names.split(",")[0] for wnid, _, names in lines}
    return [f"{wnid} {words[wnid]}" if wnid in words else wnid for wnid in classes]
