"""Data in memory as people have them: texts, sparse matrices, frames with an index, polars."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image
from scipy import sparse

from undermargin.errors import InputError
from undermargin.sources.samples import Reading
from undermargin.sources.source import load, reopen

TEXTS = [f"text number {n}" for n in range(8)]
LABELS = ["a", "b"] * 4


@pytest.mark.parametrize(
    "texts",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), pd.Series(TEXTS), pl.Series(TEXTS)],
    ids=["list", "tuple", "array", "objects", "pandas", "polars"],
)
def test_texts_and_labels(texts):
    samples = load((texts, pd.Series(LABELS, index=range(10, 18))))
    assert (samples.kind, samples.inputs, samples.class_names) == ("text", TEXTS, ["a", "b"])


def test_missing_texts_are_empty():
    assert load(([None, *TEXTS[:6], float("nan")], LABELS)).inputs == ["", *TEXTS[:6], ""]


def test_texts_of_a_torch_data_set():
    pairs = list(zip(TEXTS, [0, 1] * 4, strict=True))
    assert load(pairs).inputs == TEXTS


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_a_small_sparse_matrix_is_taken_as_it_is(make):
    dense = np.random.default_rng(0).normal(size=(8, 5)) * (np.arange(5) > 1)
    samples = load((make(dense), LABELS))
    assert samples.kind == "embeddings"
    np.testing.assert_allclose(samples.inputs, dense, rtol=1e-6)


def test_a_wide_sparse_matrix_is_reduced_and_it_is_said_so():
    rng = np.random.default_rng(0)
    groups = np.arange(600) % 2
    matrix = sparse.random_array((600, 50_000), density=0.001, rng=rng).tolil()
    matrix[np.arange(600), groups] = 20.0  # one column per class
    samples = load((matrix.tocsr(), groups))
    assert samples.inputs.shape == (600, 256)
    assert samples.found["guessed"] == ["inputs: 50,000 sparse columns, reduced to 256 numbers per sample"]
    means = [samples.inputs[groups == group].mean(0) for group in (0, 1)]
    assert np.abs(means[0] - means[1]).max() > 5  # the classes are still apart
    assert load((matrix.tocsr(), groups)).fingerprint() == samples.fingerprint()


def test_the_index_of_a_frame_names_its_samples_if_it_was_set():
    frame = pd.DataFrame({"x": [0.5, 1.5, 3.5, 2.5] * 2, "label": LABELS})
    assert load(frame).ids is None
    assert load(frame[frame["x"] != 1.5]).ids == ["0", "2", "3", "4", "6", "7"]
    assert load(frame.set_index(pd.Index([*"stuvwxyz"]))).ids == [*"stuvwxyz"]
    both = pd.MultiIndex.from_product([["p", "q"], range(4)])
    assert load(frame.set_index(both)).ids[:2] == ["p/0", "p/1"]
    assert load(pd.concat([frame, frame])).ids is None  # it names no row twice
    chosen = frame.assign(part=[*"112211xx"]).set_index(pd.Index([*"stuvwxyz"]))
    assert load(chosen, Reading(where="part=1")).ids == ["s", "t", "w", "x"]


def test_a_column_of_ids_comes_before_the_index():
    frame = pd.DataFrame({"x": [0.5, 1.5] * 4, "label": LABELS, "id": [*"stuvwxyz"]}, index=range(5, 13))
    assert load(frame).ids == [*"stuvwxyz"]


def test_the_column_of_ids_can_be_named_and_is_no_feature():
    frame = pd.DataFrame({"x": [0.5, 1.5] * 4, "label": LABELS, "key": [3, 1, 4, 15, 9, 2, 6, 5]})
    samples = load(frame, Reading(id="key"))
    assert samples.ids == ["3", "1", "4", "15", "9", "2", "6", "5"]
    assert samples.inputs.number_names == ["x"]
    with pytest.raises(InputError, match="--id x: 0 rows have no value and 6 repeat another row's; ids must be unique"):
        load(frame, Reading(id="x"))
    with pytest.raises(InputError, match="no column is called 'no'; .* Check --id"):
        load(frame, Reading(id="no"))


def test_polars_frames_eager_and_lazy():
    frame = pl.DataFrame(
        {"x": [0.5, None] * 4, "city": pl.Series(["Rome", "Oslo"] * 4, dtype=pl.Categorical), "label": LABELS}
    )
    for source in (frame, frame.lazy()):
        samples = load(source)
        assert (samples.kind, samples.class_names) == ("table", ["a", "b"])
        assert samples.inputs.number_names == ["x"]
        assert samples.inputs.codes[:2, 0].tolist() == [1, 2]
    texts = pl.DataFrame({"text": TEXTS, "label": LABELS})
    assert load(texts).inputs == TEXTS


def test_arrow_views_of_texts_are_texts():
    table = pa.table({"text": pa.array(TEXTS, pa.string_view()), "label": pa.array(LABELS, pa.string_view())})
    assert load(table).inputs == TEXTS
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 4), pa.array(["Rome", "Oslo"], pa.string_view()))
    table = pa.table({"city": names, "x": [1.5, 2.5] * 4, "label": LABELS})
    assert load(table).inputs.categories == {"city": ["Rome", "Oslo"]}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (([[1, 2], [3]], [0, 1]), "the inputs cannot be read as an array"),
        ((TEXTS, LABELS[:3]), "3 labels for 8 samples"),
        ((sparse.csr_matrix(np.eye(4)), [0, 1]), "2 labels for 4 samples"),
        (TEXTS, "the samples of a list are str, expected"),
        ([(np.zeros(3), 0), (np.zeros(4), 1)] * 4, "the inputs have different shapes"),
        ((np.zeros((8, 2)), np.zeros((8, 2))), "multi-label"),
    ],
)
def test_what_cannot_be_scanned_is_one_line(source, message):
    with pytest.raises(InputError, match=message):
        load(source)


def test_samples_in_memory_can_be_shown_while_they_are_at_hand():
    def shown(source):
        samples = load(source)
        ids = [str(index) for index in range(len(samples))]
        return reopen(samples.found, samples.kind, ids, samples=samples)

    pixels = np.zeros((8, 8, 8), np.uint8)
    pixels[3] = 200
    picture = Image.open(io.BytesIO(shown((pixels, LABELS)).picture(3, 64)))
    assert picture.getpixel((9, 9)) == (200, 200, 200)
    assert shown((TEXTS, LABELS)).text(3) == TEXTS[3]
    frame = pd.DataFrame({"x": [0.5, None] * 4, "city": ["Rome", "Oslo"] * 4, "label": LABELS})
    assert shown(frame).row(1) == {"x": None, "city": "Oslo"}
    assert not reopen({"format": "tuple"}, "images", ["0"]).is_there


def test_a_tensor_data_set_with_labels_as_tensors():
    data = torch.utils.data.TensorDataset(torch.rand(8, 5), torch.tensor([0, 1] * 4))
    assert load(data).kind == "embeddings"
