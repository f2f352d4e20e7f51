"""Views of any map-style data set (`len` and `[index]`): nothing is copied, samples are fetched on request.

Samples may be tuples (x, label, ...), as in torch data sets, or mappings {"label": ..., ...}, as in Hugging Face data
sets.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from undermargin.errors import InputError


class IndexedDataset:
    """A data set whose samples end with their index: (x, label, index), or a mapping with an "index" key.

    >>> IndexedDataset([("a", 0), ("b", 1)])[1]
    ('b', 1, 1)
    >>> IndexedDataset([{"text": "a", "label": 0}])[0]
    {'text': 'a', 'label': 0, 'index': 0}
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        position = range(len(self))[index]  # a negative index counts from the end
        return self._view(self.dataset[position], position)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """A whole batch, as torch's loader requests it; Hugging Face data sets fetch it much faster."""
        return [self._view(sample, int(index)) for index, sample in _fetch(self.dataset, indices)]

    def _view(self, sample: Any, index: int) -> Any:
        if isinstance(sample, Mapping):
            if "index" in sample:
                raise InputError("samples already have an entry 'index', which would be lost; rename it first")
            return {**sample, "index": index}
        return (*_as_tuple(sample), index)


class RelabeledDataset:
    """A data set with other labels: the second entry of a tuple, or the entry `label` of a mapping, is replaced.

    >>> RelabeledDataset([("a", 0), ("b", 1)], labels=[2, 2])[1]
    ('b', 2)
    """

    def __init__(self, dataset: Any, labels: Sequence[int], *, label: str | int | None = None) -> None:
        if len(labels) != len(dataset):
            raise InputError(f"{len(labels)} labels for {len(dataset)} samples; expected one per sample")
        self.dataset = dataset
        # by position: a pandas Series would look up its own index
        self.labels = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
        self.label = label

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        position = range(len(self))[index]  # a negative index counts from the end
        return self._view(self.dataset[position], position)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """A whole batch."""
        return [self._view(sample, int(index)) for index, sample in _fetch(self.dataset, indices)]

    def _view(self, sample: Any, index: int) -> Any:
        label = int(self.labels[index])
        if isinstance(sample, Mapping):
            key = "label" if self.label is None else self.label
            if key not in sample:
                raise InputError(
                    f"samples have no entry {key!r}, only {', '.join(map(str, sample))}; pass its name as label="
                )
            return {**sample, key: label}
        entries = list(_as_tuple(sample))
        position = 1 if self.label is None else self.label
        if not isinstance(position, int) or position >= len(entries):
            raise InputError(f"samples are tuples of {len(entries)}, so label={position!r} is not one of their entries")
        entries[position] = label
        return tuple(entries)


def _as_tuple(sample: Any) -> tuple[Any, ...]:
    return tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)


def _fetch(dataset: Any, indices: Sequence[int]) -> Iterable[tuple[int, Any]]:
    many = getattr(dataset, "__getitems__", None)
    samples = [dataset[index] for index in indices] if many is None else many(list(indices))
    return zip(indices, samples, strict=True)
