"""Which data a scan's folder may show on this machine.

A folder that came from somebody else can name any path as its data, `/` included. What may be read for it is what
this user scanned here, or confirmed: a pair of folder and data, remembered in the user's state folder, where whoever
made the scan's folder cannot have written it.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path


def confirm(folder: str | Path, data: str | Path) -> None:
    """Remember that this scan's folder may show this data; where there is no place to remember, it is asked again."""
    note = _note(folder, data)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.write_text(f"{Path(folder).resolve()}\n{Path(data).resolve()}\n")


def is_confirmed(folder: str | Path, data: str | Path) -> bool:
    """Whether it may."""
    return _note(folder, data).is_file()


def _note(folder: str | Path, data: str | Path) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    pair = f"{Path(folder).resolve()}\0{Path(data).resolve()}".encode("utf-8", "surrogateescape")
    return Path(base) / "undermargin" / "roots" / hashlib.sha256(pair).hexdigest()[:32]
