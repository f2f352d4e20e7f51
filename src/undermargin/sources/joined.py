"""A training and a test set as one, so that both are encoded in the same way."""

from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.samples import Columns, Samples


def join(train: Samples, test: Samples) -> Samples:
    """The samples of both sets, the training set first, with its classes and columns."""
    if train.kind != test.kind:
        raise InputError(f"the test set holds {test.kind}, the training set {train.kind}")
    unknown = sorted(set(test.class_names) - set(train.class_names))
    if unknown:
        raise InputError(f"the test set has classes that the training set lacks: {', '.join(unknown[:5])}")
    numbers = np.array([train.class_names.index(name) for name in test.class_names])
    labels = np.concatenate([train.labels, numbers[test.labels]])
    return Samples(train.kind, _inputs(train.inputs, test.inputs), labels, train.class_names, None, train.found)


def _inputs(train: Any, test: Any) -> Any:
    if isinstance(train, list):
        return train + test
    if isinstance(train, Columns):
        return _columns(train, test)
    if train.shape[1:] != test.shape[1:]:
        raise InputError(f"the test set's inputs have shape {test.shape[1:]}, the training set's {train.shape[1:]}")
    return np.concatenate([train[:], test[:]])


def _columns(train: Columns, test: Columns) -> Columns:
    """Columns matched by name; a category that the training set lacks counts as missing."""
    absent = [name for name in train.number_names if name not in test.number_names]
    absent += [name for name in train.categories if name not in test.categories]
    if absent:
        raise InputError(f"the test set lacks the columns {', '.join(absent)}, or they hold another type of values")
    numbers = test.numbers[:, [test.number_names.index(name) for name in train.number_names]]
    codes = np.zeros((len(test), len(train.categories)), np.int64)
    for column, (name, values) in enumerate(train.categories.items()):
        known = {value: code for code, value in enumerate(values, 1)}
        translated = np.array([0, *(known.get(value, 0) for value in test.categories[name])])
        codes[:, column] = translated[test.codes[:, list(test.categories).index(name)]]
    return Columns(
        np.concatenate([train.numbers, numbers]),
        np.concatenate([train.codes, codes]),
        train.number_names,
        train.categories,
    )
