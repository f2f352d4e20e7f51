"""Where a scan may be written: into a new or empty folder, or into one that holds a scan, apart from the data."""

from pathlib import Path
from typing import Any

from undermargin.errors import FolderError, InputError
from undermargin.scans.folder import SPILLED
from undermargin.storage.files import TEMPORARY


def check_out(out: Path, source: Any) -> None:
    """Raise if a scan written to `out` would mix with other files, or with the data themselves."""
    if out.exists() and not out.is_dir():
        raise FolderError(f"{out} is a file; a scan needs a folder. Choose another path with --out")
    if isinstance(source, (str, Path)):
        _check_apart(out.resolve(), Path(source).resolve(), out, source)
    if out.is_dir() and not (out / "config.json").is_file():
        others = [path.name for path in out.iterdir() if not _is_ours(path.name)]
        if others:
            raise FolderError(
                f"{out} holds {len(others)} other files or folders (such as {min(others)}) and no scan; choose a new "
                "folder with --out"
            )


def _check_apart(out: Path, data: Path, named_out: Path, named_data: str | Path) -> None:
    if out == data or out.is_relative_to(data):
        raise InputError(
            f"{named_out} lies inside the data, {named_data}: the next scan would read it as data. Choose a folder "
            "outside with --out"
        )
    if data.is_relative_to(out):
        raise InputError(
            f"{named_out} contains the data, {named_data}: they would mix with the scan's files. Choose another "
            "folder with --out"
        )


def _is_ours(name: str) -> bool:
    """What a scan that was killed before its first checkpoint leaves."""
    return name == ".lock" or any(pattern.fullmatch(name) for pattern in (TEMPORARY, SPILLED))
