import datasets
import numpy as np
import pandas as pd
import pytest
import torch

from undermargin import IndexedDataset, RelabeledDataset, folds
from undermargin.errors import InputError


@pytest.fixture
def hugging_face():
    return datasets.Dataset.from_dict({"text": ["a", "b", "c", "d"], "label": [0, 1, 0, 1]})


def test_a_loader_over_a_torch_data_set_gives_indices_and_a_folds_labels():
    data = torch.utils.data.TensorDataset(torch.arange(6.0), torch.tensor([0, 1, 0, 1, 0, 1]))
    fold = folds([0, 1, 0, 1, 0, 1], 2)[0]
    view = IndexedDataset(RelabeledDataset(data, fold.labels))
    loader = torch.utils.data.DataLoader(view, batch_size=4, shuffle=True)
    for x, labels, indices in loader:
        np.testing.assert_array_equal(x, indices)
        np.testing.assert_array_equal(labels, fold.labels[indices])


def test_a_loader_over_a_hugging_face_data_set_does_too(hugging_face):
    view = IndexedDataset(RelabeledDataset(hugging_face, [3, 2, 1, 0]))
    batch = next(iter(torch.utils.data.DataLoader(view, batch_size=4)))
    assert batch["text"] == ["a", "b", "c", "d"]
    assert batch["label"].tolist() == [3, 2, 1, 0]
    assert batch["index"].tolist() == [0, 1, 2, 3]


def test_worker_processes_can_carry_the_views():
    view = IndexedDataset(RelabeledDataset([("a", 0), ("b", 1)], [5, 6]))
    loader = torch.utils.data.DataLoader(view, batch_size=2, num_workers=1)
    x, labels, indices = next(iter(loader))
    assert (list(x), labels.tolist(), indices.tolist()) == (["a", "b"], [5, 6], [0, 1])


class Counting:
    """A data set that notes what was fetched, and how."""

    def __init__(self):
        self.fetched = []

    def __len__(self):
        return 10

    def __getitem__(self, index):
        self.fetched.append(index)
        return (index, 0)


class CountingBatches(Counting):
    def __getitems__(self, indices):
        self.fetched.append(indices)
        return [(index, 0) for index in indices]


def test_views_fetch_only_what_is_asked_for():
    data = Counting()
    view = IndexedDataset(RelabeledDataset(data, range(10)))
    assert len(view) == 10
    assert data.fetched == []
    assert view[7] == (7, 7, 7)
    assert data.fetched == [7]
    assert view[-1] == (9, 9, 9)


def test_batches_are_fetched_as_batches_where_the_data_set_can():
    data = CountingBatches()
    view = IndexedDataset(RelabeledDataset(data, range(10)))
    assert view.__getitems__([3, 4]) == [(3, 3, 3), (4, 4, 4)]
    assert data.fetched == [[3, 4]]


def test_the_label_may_be_called_or_placed_otherwise():
    assert RelabeledDataset([{"x": 1, "fine": 0}], [9], label="fine")[0] == {"x": 1, "fine": 9}
    assert RelabeledDataset([(1, 2, 3)], [9], label=2)[0] == (1, 2, 9)


def test_labels_of_a_series_are_taken_by_position():
    view = RelabeledDataset([("a", 0), ("b", 1)], pd.Series([7, 8], index=[1, 0]))
    assert [view[0], view[1]] == [("a", 7), ("b", 8)]


def test_labels_that_are_not_there_are_errors():
    with pytest.raises(InputError, match="no entry 'label', only x"):
        RelabeledDataset([{"x": 1}], [9])[0]
    with pytest.raises(InputError, match="tuples of 1"):
        RelabeledDataset([(1,)], [9])[0]
    with pytest.raises(InputError, match="2 labels for 1 samples"):
        RelabeledDataset([(1, 0)], [9, 9])


def test_an_entry_of_the_samples_own_called_index_is_not_lost():
    with pytest.raises(InputError, match="already have an entry 'index'"):
        IndexedDataset([{"text": "a", "index": 7}])[0]
