"""Check that files are the published ones, if their md5 sums are known."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from undermargin.errors import InputError

UNCHECKED = "download it again; in Python, official.load(..., check=False) accepts it as it is"


def check_md5(path: Path, known: Sequence[str], contents: bytes | None = None) -> None:
    """Raise unless the md5 sum of a file, or of its unpacked contents, is a known one or starts with one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    inside = found if contents is None else hashlib.md5(contents, usedforsecurity=False).hexdigest()
    if not any(md5.startswith(start) for start in known for md5 in (found, inside)):
        raise InputError(
            f"{path} is not the published file: its md5 sum is {found}, expected {' or '.join(known)}; {UNCHECKED}"
        )
