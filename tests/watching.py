"""What another process does, seen from outside."""

from contextlib import suppress


def written(folder):
    """The files of a folder: how long each is, and when it was last written."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # renamed in between
            state = path.stat()
            found[path] = state.st_size, state.st_mtime_ns
    return found
