"""Folders that hold several parts of a data set, such as train/ and test/: one of them is scanned."""

import re
from collections.abc import Sequence

from undermargin.errors import InputError

NAMES = ("train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation")
IN_FILE_NAME = re.compile(rf"(?:^|[-_.])({'|'.join(NAMES)})(?:[-_.]|$)", re.IGNORECASE)


def is_split(name: str) -> bool:
    """Whether a folder's name is that of a split.

    >>> is_split("train"), is_split("cat")
    (True, False)
    """
    return name.lower() in NAMES


def split_of(stem: str) -> str | None:
    """The split that a file belongs to by its name, if it names exactly one.

    >>> split_of("train-00000-of-00002"), split_of("part-0")
    ('train', None)
    """
    found = {name.lower() for name in IN_FILE_NAME.findall(stem)}
    return found.pop() if len(found) == 1 else None


def choose(what: object, splits: Sequence[str], wanted: str | None) -> str:
    """The split that was asked for, or the only one there is."""
    if wanted is not None:
        if wanted not in splits:
            raise InputError(f"{what} has no split {wanted!r}; splits are {', '.join(splits)}. Check --split")
        return wanted
    if len(splits) != 1:
        first = next((name for name in splits if name.lower().startswith("train")), splits[0] if splits else "NAME")
        raise InputError(
            f"{what} holds {len(splits)} splits: {', '.join(splits)}; pass --split {first} to scan one of them "
            f"(split={first!r} in Python)"
        )
    return splits[0]


def refuse(what: object, wanted: str | None) -> None:
    """Refuse a split of data that have none."""
    if wanted is not None:
        raise InputError(
            f"{what} has no splits, so --split {wanted} has no meaning; to choose rows, pass --where COLUMN={wanted}"
        )
