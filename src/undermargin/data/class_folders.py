"""Images in one folder a class: photos/cat/1.jpg."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.data.pictures import MAX_SKIPPED_SHARE, SUFFIXES, common_size, decode
from undermargin.data.samples import Samples, encode_labels
from undermargin.errors import InputError


def is_class_folders(path: Path) -> bool:
    """Whether a folder has folders with images in them."""
    return any(
        file.suffix.lower() in SUFFIXES for child in path.iterdir() if child.is_dir() for file in child.rglob("*")
    )


def load_class_folders(path: Path, *, image_size: int | None = None) -> Samples:
    """Every image below `path`; its class is the first folder on the way to it."""
    folders = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.suffix.lower() in SUFFIXES]
    if not files:
        raise InputError(
            f"{path} has no images in class folders; expected {path.name}/CLASS/NAME with one of {', '.join(SUFFIXES)}"
        )
    size = common_size(files, image_size)
    images, kept, skipped = _decode_all(files, path, size)
    if len(skipped) > MAX_SKIPPED_SHARE * len(files):
        raise InputError(
            f"{len(skipped)} of {len(files)} images in {path} cannot be read, the first is {skipped[0][0]}: "
            f"{skipped[0][1]}"
        )
    names = [file.relative_to(path).parts[0] for file in kept]
    labels, class_names = encode_labels(names, name=f"the folders of {path}")
    empty = sorted({folder.name for folder in folders} - set(class_names))
    found: dict[str, Any] = {"path": str(path), "format": "class folders", "image_size": size, "empty_classes": empty}
    ids = [file.relative_to(path).as_posix() for file in kept]
    return Samples("images", images, labels, class_names, ids, found, skipped)


def _decode_all(
    files: list[Path], root: Path, size: int
) -> tuple[npt.NDArray[np.uint8], list[Path], list[tuple[str, str]]]:
    images = np.empty((len(files), size, size, 3), np.uint8)
    kept: list[Path] = []
    skipped: list[tuple[str, str]] = []
    for file in files:
        try:
            images[len(kept)] = decode(file.read_bytes(), size)
        except InputError as error:
            skipped.append((file.relative_to(root).as_posix(), str(error)))
        else:
            kept.append(file)
    return images[: len(kept)], kept, skipped
