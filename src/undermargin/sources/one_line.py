"""Errors of other libraries as errors of one line: their readers raise all kinds of exceptions for damaged data."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from undermargin.errors import InputError, UndermarginError

LONGEST = 300  # characters


def reason(error: BaseException) -> str:
    """What an exception says, in one line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split())[:LONGEST] or type(error).__name__


@contextmanager
def reading(path: Path | None, noun: str) -> Iterator[None]:
    """While data are read: whatever is raised becomes an InputError that says what they cannot be read as."""
    try:
        yield
    except UndermarginError:
        raise
    except RecursionError:
        raise InputError(f"{path} cannot be read as {noun}: its values are nested too deeply") from None
    except Exception as error:
        raise InputError(f"{path} cannot be read as {noun}: {reason(error)}") from None


@contextmanager
def rewriting(path: Path | None) -> Iterator[None]:
    """While cleaned data are written: damage in what was not scanned becomes an InputError; a full disk stays one."""
    try:
        yield
    except (UndermarginError, OSError):
        raise
    except Exception as error:
        raise InputError(f"{path} cannot be rewritten: {reason(error)}") from None
