"""Labels as they stand in the data, turned into class numbers and names."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

Labels = npt.NDArray[np.int64]

ID_LIKE_SHARE = 0.5  # distinct labels per sample; more than this and they are ids, not classes
SEPARATORS = "|;,"  # between the labels of a multi-label sample
LABEL_OPTION = "pass --label NAME (label= in Python)"


def encode_labels(values: Sequence[Any], *, name: str = "the labels") -> tuple[Labels, list[str]]:
    """Class numbers (samples,) and class names, from strings, whole numbers or booleans.

    >>> encode_labels(["dog", "cat", "dog", "dog"])
    (array([1, 0, 1, 1]), ['cat', 'dog'])
    """
    values = list(values)
    if any(isinstance(value, (list, tuple, dict, np.ndarray)) for value in values):
        raise InputError(f"{name} hold lists; several labels per sample (multi-label, detection) are not supported")
    array = np.asarray(values, dtype=object)
    missing = sum(value is None or value != value or value == "" for value in array)
    if missing:
        raise InputError(f"{missing} of {len(array)} samples have no label in {name}; add labels or remove the samples")
    if any(isinstance(value, (float, np.floating)) and not float(value).is_integer() for value in array):
        raise InputError(f"{name} hold fractions such as {array[0]}; expected classes, not numbers to predict")
    distinct = sorted(set(array.tolist()), key=lambda value: (str(type(value)), value))
    _check_single(distinct, name)
    _check_classes(len(distinct), len(array), name)
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in array], dtype=np.int64), [_name(value) for value in distinct]


def _check_single(distinct: list[Any], name: str) -> None:
    """Refuse strings that list several labels, such as a|b|c: each combination would become a class of its own."""
    texts = [value for value in distinct if isinstance(value, str)]
    for separator in SEPARATORS:
        listed = [text for text in texts if separator in text]
        parts = _parts(texts, separator)
        if len(listed) >= 2 and 2 * sum(map(_is_free, parts.values())) >= len(parts):
            raise InputError(
                f"{name} hold several labels per sample, separated by {separator!r}, such as {listed[0][:80]!r}: "
                f"{len(texts)} combinations of {len(parts)} labels. Multi-label data are not supported. Keep one label "
                f"per sample and {LABEL_OPTION}; if these are single classes, rename them without {separator!r}"
            )


def _parts(texts: list[str], separator: str) -> dict[str, set[int]]:
    """Each part of the texts, with the positions at which it occurs; -1 where it is a whole text."""
    places: dict[str, set[int]] = defaultdict(set)
    for text in texts:
        parts = [part.strip() for part in text.split(separator)]
        for position, part in enumerate(parts):
            places[part].add(position if len(parts) > 1 else -1)
    return places


def _is_free(places: set[int]) -> bool:
    """Whether a part is a label of its own: it occurs alone, or at several positions.

    The parts of one class name do neither: in Food|Dessert and Food|Soup each has its place.
    """
    return -1 in places or len(places) > 1


def _check_classes(num_classes: int, num_samples: int, name: str) -> None:
    if num_classes < 2:
        raise InputError(
            f"{name} hold one class only, in {num_samples} samples; wrong labels can be found among two or more classes"
        )
    if num_samples < 2 * num_classes or num_classes > ID_LIKE_SHARE * num_samples:
        raise InputError(
            f"{name} hold {num_classes} different values in {num_samples} samples: they look like ids, or there are "
            f"too few samples per class; to use another column, {LABEL_OPTION}"
        )


def _name(value: Any) -> str:
    return str(int(value)) if isinstance(value, (float, np.floating)) else str(value)
