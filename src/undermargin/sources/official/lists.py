"""Text files that list images, their labels or the names of classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.labels import Labels


def read_lines(path: Path) -> list[str]:
    """The non-empty lines of a file."""
    if not path.is_file():
        raise InputError(f"there is no {path}; download it again")
    try:
        return [line for line in map(str.strip, path.read_text("utf-8").split("\n")) if line]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}; download it again") from None


def check_present(path: Path, files: Sequence[str], hint: str) -> None:
    """Raise unless the first file of every listed folder exists: some may not have been unpacked."""
    firsts: dict[str, str] = {}
    for file in files:
        firsts.setdefault(file.rpartition("/")[0], file)
    missing = [file for file in firsts.values() if not (path / file).is_file()]
    if missing:
        raise InputError(
            f"images of {len(missing)} of {len(firsts)} folders are missing, the first is {path / missing[0]}; {hint}"
        )


def read_labels(path: Path) -> tuple[list[str], Labels]:
    """File names and class numbers of a list; file names may contain spaces and commas."""
    lines = [line.rpartition(" ") for line in read_lines(path)]
    unknown = [number for number, (file, _, label) in enumerate(lines, 1) if not file or not label.isdecimal()]
    if unknown:
        raise InputError(f"{path} has no file and label in line {unknown[0]}; expected both, such as: a.jpg 7")
    return [file for file, _, _ in lines], np.array([int(label) for _, _, label in lines], np.int64)
