"""Which data a scan's folder may show on this machine.

A folder that was made elsewhere can name any path as its data, `/` included. Only data that this user scanned here, or
confirmed, are read for it: pairs of folder and data, remembered in the user's state folder, which the maker of the
folder cannot have written.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path


def confirm(folder: str | Path, data: str | Path) -> None:
    """Remember that this scan's folder may show this data; if it cannot be remembered, the user is asked again."""
    note = _note(folder, data)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.write_text(f"{Path(folder).resolve()}\n{Path(data).resolve()}\n", "utf-8", "surrogateescape")


def is_confirmed(folder: str | Path, data: str | Path) -> bool:
    """Whether this scan's folder may show this data."""
    return _note(folder, data).is_file()


def _note(folder: str | Path, data: str | Path) -> Path:
    # the state folder of Linux and macOS, or of Windows
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".local" / "state"
    pair = f"{Path(folder).resolve()}\0{Path(data).resolve()}".encode("utf-8", "surrogateescape")
    return Path(base) / "undermargin" / "roots" / hashlib.sha256(pair).hexdigest()[:32]
