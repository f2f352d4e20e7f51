"""What files were like when they were scanned, so that a change is noticed without decoding them again.

Recorded in config["source"]: a digest of all sizes and modification times, which is quick to compare, and a digest of
each file's content for when it differs, as after a copy.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

DIGEST_BYTES = 9
DIGEST_LENGTH = 12  # characters: base64 of the above


def digest(data: bytes) -> str:
    """The digest of a file's content."""
    return _text(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest())


def record(files: Sequence[Path], digests: Iterable[str] | None = None) -> dict[str, str]:
    """What these files are like now; digests that are known already need not be computed again."""
    contents = _digests(files) if digests is None else digests
    return {"times": _times(files), "digests": "".join(contents)}


def changed(files: Sequence[Path], recorded: Mapping[str, Any]) -> list[int]:
    """Positions of the files that are gone or have another content than when they were recorded."""
    digests = str(recorded.get("digests", ""))
    if len(digests) != DIGEST_LENGTH * len(files):
        return list(range(len(files)))
    if _times(files) == recorded.get("times"):
        return []
    return [place for place, now in enumerate(_digests(files)) if now != recorded_digest(recorded, place)]


def recorded_digest(recorded: Mapping[str, Any], place: int) -> str:
    """The digest of one of the recorded files."""
    return str(recorded["digests"])[DIGEST_LENGTH * place : DIGEST_LENGTH * (place + 1)]


def _times(files: Sequence[Path]) -> str:
    """One digest of all sizes and modification times; names do not count, so that data can be moved."""
    whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for file in files:
        try:
            state = file.stat()
            whole.update(b"%d %d\n" % (state.st_size, state.st_mtime_ns))
        except OSError:
            whole.update(b"missing\n")
    return _text(whole.digest())


def _digests(files: Sequence[Path]) -> list[str]:
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_digest_of, files))


def _digest_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return _text(hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).digest())
    except OSError:
        return ""  # equal to no digest


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
