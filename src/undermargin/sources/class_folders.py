"""Images in one folder a class: photos/cat/1.jpg."""

from pathlib import Path
from typing import Any

from undermargin.errors import InputError
from undermargin.sources.pictures import SUFFIXES, common_size
from undermargin.sources.pixels import decode_all
from undermargin.sources.samples import Reading, Samples, encode_labels


def is_class_folders(path: Path) -> bool:
    """Whether a folder has folders with images in them."""
    return any(
        file.suffix.lower() in SUFFIXES for child in path.iterdir() if child.is_dir() for file in child.rglob("*")
    )


def load_class_folders(path: Path, reading: Reading) -> Samples:
    """Every image below `path`; its class is the first folder on the way to it."""
    folders = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
    files = [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in SUFFIXES and file.is_file()
    ]
    if not files:
        raise InputError(
            f"{path} has no images in class folders; expected {path.name}/CLASS/NAME with one of {', '.join(SUFFIXES)}"
        )
    size = common_size(files, reading.image_size)
    ids = [_id(file, path) for file in files]
    reads = zip(ids, (file.read_bytes for file in files), strict=True)
    images, kept, skipped = decode_all(reads, len(files), size, reading)
    ids = [ids[position] for position in kept]
    labels, class_names = encode_labels([name.split("/")[0] for name in ids], name=f"the folders of {path}")
    empty = sorted({folder.name for folder in folders} - set(class_names))
    found: dict[str, Any] = {"path": str(path), "format": "class folders", "image_size": size, "empty_classes": empty}
    return Samples("images", images, labels, class_names, ids, found, skipped)


def _id(file: Path, root: Path) -> str:
    name = file.relative_to(root).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise InputError(f"the file name {shown} is not UTF-8; rename it") from None
    return name
