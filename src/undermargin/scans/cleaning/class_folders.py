"""Images in one folder a class: copied, with the relabeled ones in the folder of their new class.

The copy is made by walking the original, not by following ids, so nothing outside of it is ever read. What was not
scanned, such as notes beside the images or images that could not be read, is copied as it is.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from undermargin.errors import InputError
from undermargin.scans.cleaning.changes import Changes
from undermargin.storage.files import making


def layout(source: Path, changes: Changes) -> dict[str, str]:
    """Every file that stays, by its name: what it will be called."""
    names = [path.relative_to(source).as_posix() for path in _walk(source) if not path.is_dir()]
    there = set(names)
    missing = [name for name in changes.ids if name not in there]
    if missing:
        raise InputError(f"{len(missing)} images of the scan are gone from {source}, the first is {missing[0]}")
    indices = {name: index for index, name in enumerate(changes.ids)}
    staying = [name for name in names if name not in indices or not changes.is_dropped[indices[name]]]
    moved = _moved(changes, staying, indices)
    return {name: moved.get(indices.get(name, -1), name) for name in staying}


def write_class_folders(source: Path, target: Path, names: Mapping[str, str], *, is_linked: bool = False) -> None:
    """Copy or link files under their new names; folders stay, also those that are empty now."""
    with making(target) as partial:
        for path in _walk(source):
            name = path.relative_to(source).as_posix()
            if path.is_dir():
                (partial / name).mkdir(parents=True, exist_ok=True)
            elif name in names:
                copy = partial / names[name]
                copy.parent.mkdir(parents=True, exist_ok=True)
                _copy(path, copy, is_linked=is_linked)


def _walk(source: Path) -> Iterator[Path]:
    """Everything below; a class folder may be a link, as it may for a scan."""
    for child in sorted(source.iterdir()):
        yield child
        if child.is_dir():
            yield from sorted(child.rglob("*"))


def _moved(changes: Changes, staying: list[str], indices: dict[str, int]) -> dict[int, str]:
    """New names of relabeled samples; where one is taken, the old class is added to it."""
    relabeled = set(changes.relabeled.tolist())
    taken = {name for name in staying if indices.get(name, -1) not in relabeled}
    moved = {}
    for index in sorted(relabeled):
        old = PurePosixPath(changes.ids[index])
        # the folder of a sample that is there, not a name that somebody wrote down: it cannot lead elsewhere
        folder = PurePosixPath(changes.ids[changes.exemplars[changes.new_labels[index]]]).parts[0]
        new = PurePosixPath(folder, *old.parts[1:])
        number = 1
        while str(new) in taken:
            more = f"-from-{old.parts[0]}{f'-{number}' if number > 1 else ''}"
            new = new.with_name(f"{old.stem}{more}{old.suffix}")
            number += 1
        taken.add(str(new))
        moved[index] = str(new)
    return moved


def _copy(source: Path, target: Path, *, is_linked: bool) -> None:
    if not is_linked:
        shutil.copy2(source, target)
        return
    try:
        os.link(source, target)
    except OSError as error:
        raise InputError(f"{source} cannot be linked to {target.parent}: {error.strerror}; leave out --link") from None
