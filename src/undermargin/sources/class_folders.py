"""Images in one folder per class: photos/cat/1.jpg."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from undermargin.errors import InputError
from undermargin.sources import splits
from undermargin.sources.base import Edit, Ints, Source
from undermargin.sources.datasets_library import image_dataset
from undermargin.sources.evidence import changed, digest, record, recorded_digest
from undermargin.sources.labels import encode_labels
from undermargin.sources.pictures import SUFFIXES, common_size, open_image
from undermargin.sources.pixels import decode_all
from undermargin.sources.samples import Reading, Samples
from undermargin.storage.files import making

if TYPE_CHECKING:
    from PIL import Image


class ClassFolders(Source):
    """A folder whose folders are classes; a sample is a file in one of them, and its path below is its id."""

    noun: ClassVar[str] = "class folders"
    has_files: ClassVar[bool] = True

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a folder has folders with images in them."""
        return any(_has_images(child) for child in path.iterdir() if child.is_dir())

    @classmethod
    def load(cls, path: Path, reading: Reading) -> Samples:
        """Every image below `path`; its class is the first folder on the way to it."""
        root, path = path, _chosen_split(path, reading.split)
        folders = _classes(path)
        files = [
            file
            for folder in folders
            for file in sorted(folder.rglob("*"))
            if file.suffix.lower() in SUFFIXES and file.is_file()
        ]
        if not files:
            raise InputError(
                f"{path} has no images in class folders; expected {path.name}/CLASS/NAME with one of "
                f"{', '.join(SUFFIXES)}"
            )
        size = common_size(files, reading.image_size)
        samples = _decoded(path, [_id(file, path) for file in files], size, reading)
        samples.found["empty_classes"] = sorted({folder.name for folder in folders} - set(samples.class_names))
        if path != root and reading.split is None:
            samples.found["guessed"] = [f"split: {path.name}"]
        return samples

    def _check(self, *, is_thorough: bool) -> None:
        if not is_thorough:
            return
        files = [self.place / name for name in self.ids]
        there = set(_file_names(self.place))  # an id that leads out of the folder is not among them
        missing = [name for name in self.ids if name not in there]
        if missing:
            raise self.has_changed(f"{len(missing)} images of the scan are gone, the first is {missing[0]}")
        recorded = self.found.get("files")
        if recorded is None and self.fingerprint is not None:  # a scan of version 0.1
            size = self.found.get("image_size") or common_size(files, None)
            self.compare(lambda reading: _decoded(self.place, list(self.ids), size, reading))
        elif recorded is not None and (others := changed(files, recorded)):
            raise self.has_changed(f"{len(others)} of {len(files)} images, the first is {self.ids[others[0]]}")

    def file(self, index: int) -> Path:
        """The file of a sample; one that is not below the data set's folder is refused."""
        root = self.place.resolve()
        file = (root / self.ids[index]).resolve()
        if not file.is_relative_to(root):
            raise InputError(f"{self.ids[index]} is not below {root}")
        return file

    def image(self, index: int, side: int) -> "Image.Image":
        """A sample's picture, if it is still the one that was scanned."""
        return open_image(self._bytes(index), side)

    def _bytes(self, index: int) -> bytes:
        file = self.file(index)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InputError(f"{self.ids[index]} cannot be read: {error.strerror}") from None
        recorded = self.found.get("files")
        if recorded is not None and digest(data) != recorded_digest(recorded, index):
            raise self.has_changed(f"{self.ids[index]} is another image")
        return data

    def dataset(self, rows: Ints, labels: Ints, class_names: Sequence[str]) -> Any:
        """These samples as a data set of the `datasets` library: the encoded images and their labels."""
        images = [{"bytes": self._bytes(row), "path": self.ids[row]} for row in rows.tolist()]
        return image_dataset(images, labels, class_names)

    def renamed(self, edit: Edit) -> Mapping[str, str]:
        """New ids of the samples that stay: a relabeled image moves to the folder of its class."""
        names = _layout(self.place, self.ids, edit)
        return {name: names[name] for name in self.ids if name in names}

    def rewrite(self, target: Path, edit: Edit, *, is_linked: bool = False) -> None:
        """Copy or link the files that stay under their new names; folders stay even if they are empty now.

        The copy follows the original's tree, not the ids, so nothing outside of it is read. Files that were not
        scanned, such as notes or unreadable images, are copied as they are.
        """
        self.check(is_thorough=True)
        names = _layout(self.place, self.ids, edit)
        with making(target) as partial_target:
            for path in _walk(self.place):
                name = path.relative_to(self.place).as_posix()
                if path.is_dir():
                    (partial_target / name).mkdir(parents=True, exist_ok=True)
                elif name in names:
                    copy = partial_target / names[name]
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    _copy(path, copy, self.place, is_linked=is_linked)


def _classes(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))


def _has_images(folder: Path) -> bool:
    return any(file.suffix.lower() in SUFFIXES for file in folder.rglob("*"))


def _chosen_split(path: Path, wanted: str | None) -> Path:
    """The folder of one split, if the folders are splits and not classes."""
    with_images = [folder for folder in _classes(path) if _has_images(folder)]
    names = [folder.name for folder in with_images]
    are_splits = all(map(splits.is_split, names)) or wanted in names
    num_classes = [_num_classes(folder) for folder in with_images] if are_splits else []
    if num_classes and min(num_classes) > 0 and max(num_classes) > 1:
        return path / splits.choose(path, names, wanted)
    splits.refuse(path, wanted)
    return path


def _num_classes(folder: Path) -> int:
    """How many class folders a folder has; 0 if it has images of its own, as a class folder does."""
    children = list(folder.iterdir())
    if any(child.suffix.lower() in SUFFIXES and child.is_file() for child in children):
        return 0
    return sum(child.is_dir() and _has_images(child) for child in children)


def _decoded(root: Path, ids: list[str], size: int, reading: Reading) -> Samples:
    """Samples of these files; unreadable ones are left out."""
    digests: dict[str, str] = {}
    reads = ((name, partial(_read, root, name, digests)) for name in ids)
    images, kept, skipped = decode_all(reads, len(ids), size, reading)
    ids = [ids[position] for position in kept]
    labels, class_names = encode_labels([name.split("/")[0] for name in ids], name=f"the folders of {root}")
    evidence = record([root / name for name in ids], [digests[name] for name in ids])
    found: dict[str, Any] = {"path": str(root), "image_size": size, "files": evidence}
    return Samples("images", images, labels, class_names, ids, found, skipped)


def _read(root: Path, name: str, digests: dict[str, str]) -> bytes:
    data = (root / name).read_bytes()
    digests[name] = digest(data)
    return data


def _id(file: Path, root: Path) -> str:
    name = file.relative_to(root).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise InputError(f"the file name {shown} is not UTF-8; rename it") from None
    return name


def _walk(root: Path) -> Iterator[Path]:
    """Everything below `root`; a class folder may be a link, as in a scan."""
    for child in sorted(root.iterdir()):
        yield child
        if child.is_dir():
            yield from sorted(child.rglob("*"))


def _file_names(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in _walk(root) if not path.is_dir()]


def _layout(root: Path, ids: Sequence[str], edit: Edit) -> dict[str, str]:
    """Every file that stays, by its name: its new name."""
    indices = {name: index for index, name in enumerate(ids)}
    names = _file_names(root)
    if not indices.keys() <= set(names):
        raise InputError(f"some images of the scan are not below {root}")
    staying = [name for name in names if name not in indices or edit.is_kept[indices[name]]]
    moving = [index for index, other in enumerate(edit.label_from.tolist()) if edit.is_kept[index] and other != index]
    taken = set(staying) - {ids[index] for index in moving}
    moved = {}
    for index in moving:
        # the folder of a sample that is there, not a class name that anyone could have written: it leads nowhere else
        folder = PurePosixPath(ids[edit.label_from[index]]).parts[0]
        moved[ids[index]] = _free_name(PurePosixPath(ids[index]), folder, taken)
        taken.add(moved[ids[index]])
    return {name: moved.get(name, name) for name in staying}


def _free_name(old: PurePosixPath, folder: str, taken: set[str]) -> str:
    """The old name in another folder; if that is taken, with the old class added."""
    new, number = PurePosixPath(folder, *old.parts[1:]), 1
    while str(new) in taken:
        more = f"-from-{old.parts[0]}{f'-{number}' if number > 1 else ''}"
        new = new.with_name(f"{old.stem}{more}{old.suffix}")
        number += 1
    return str(new)


def _copy(source: Path, target: Path, root: Path, *, is_linked: bool) -> None:
    """Copy or link a file. A link that leads out of the data stays a link: what is there is not copied."""
    real = source.resolve()
    if not real.is_relative_to(root.resolve()):
        target.symlink_to(real)
    elif not real.is_file():  # a broken link, a pipe, a socket
        return
    elif not is_linked:
        shutil.copy2(source, target)
    else:
        try:
            os.link(source, target)
        except OSError as error:
            raise InputError(
                f"{source} cannot be linked to {target.parent}: {error.strerror}; leave out --link"
            ) from None
