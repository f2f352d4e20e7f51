import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from undermargin import Run, identify
from undermargin.errors import InputError


def test_judged_are_observed_samples_without_the_extra_label():
    run = Run([1.0, np.nan, 2.0], [False, False, True])
    assert run.judged.tolist() == [True, False, False]


def test_a_run_without_threshold_samples_needs_no_mask():
    run = Run([1.0, 2.0])
    assert not run.has_threshold
    assert run.is_threshold.tolist() == [False, False]


def test_every_field_survives_its_file(tmp_path):
    run = Run(
        scores=np.array([1.0, np.nan], np.float32),
        is_threshold=[True, False],
        labels=[1, 0],
        ids=["x", "y"],
        class_names=["a", "b"],
        suggested_labels=[-1, 1],
        suggestion_confidence=[0.0, 0.5],
        fold=1,
        score="el2n",
    )
    run.save(tmp_path / "run.parquet")
    loaded = Run.load(tmp_path / "run.parquet")
    for name in ("scores", "is_threshold", "labels", "suggested_labels", "suggestion_confidence"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(run, name))
    for name in ("ids", "class_names", "fold", "score"):
        assert getattr(loaded, name) == getattr(run, name)


@pytest.mark.parametrize(
    "ids", [[3, 2], np.array([3, 2]), torch.tensor([3, 2]), pd.Series([3, 2], index=[1, 0]), (Path("3"), Path("2"))]
)
def test_ids_are_text_by_position_whatever_holds_them(ids, tmp_path):
    run = Run(scores=[1.0, 2.0], ids=ids)
    assert run.ids == ["3", "2"]
    run.save(tmp_path / "run.parquet")
    assert identify([Run.load(tmp_path / "run.parquet"), run], "gaussian").ids == ["3", "2"]


def test_a_file_name_in_no_known_encoding_can_be_written(tmp_path):
    run = Run(scores=[1.0], ids=[os.fsdecode(b"caf\xe9.png")])
    assert run.ids == ["caf\\xe9.png"]
    run.save(tmp_path / "run.parquet")
    assert Run.load(tmp_path / "run.parquet").ids == run.ids


def test_small_types_of_labels_do_not_overflow():
    labels = np.arange(20, dtype=np.uint8)
    rivals = (labels + 1) % 20
    run = Run(np.zeros(20), labels=labels, suggested_labels=rivals, suggestion_confidence=np.ones(20))
    found = identify(run, 0.5).summary()["confusions"]
    pairs = {(int(row["label"]), int(row["suggested_label"])) for row in found}
    assert pairs == {(label, (label + 1) % 20) for label in range(20)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": [[1.0]]}, r"shape \(1, 1\)"),
        ({"scores": ["a"]}, "expected one number per sample"),
        ({"scores": [1.0, 2.0], "is_threshold": [True]}, "is_threshold has 1 entries, expected 2"),
        ({"scores": [1.0], "labels": [3], "class_names": ["a"]}, "labels hold 3, but class_names has 1 entries"),
        ({"scores": [1.0], "labels": ["cat"]}, "names belong in class_names"),
        ({"scores": [1.0], "labels": [-1]}, "labels hold -1, expected 0 or more"),
        ({"scores": [1.0], "suggested_labels": [2], "class_names": ["a"]}, "suggested_labels hold 2"),
        ({"scores": [1.0, 2.0, 3.0], "is_threshold": [0, 1, 2]}, "expected True or False"),
        ({"scores": [np.inf]}, "1 scores are infinite"),
        ({"scores": [1.0, 2.0], "labels": [0, 2], "class_names": ["x", "y", "x"]}, "holds 'x' more than once"),
    ],
)
def test_fields_that_do_not_fit_are_errors(fields, message):
    with pytest.raises(InputError, match=message):
        Run(**fields)


def test_a_file_of_something_else_is_no_run(tmp_path):
    identify(Run([1.0, 2.0]), 1.5).save(tmp_path / "verdicts.parquet")
    with pytest.raises(InputError, match="is not a run written by undermargin"):
        Run.load(tmp_path / "verdicts.parquet")


def test_the_number_of_a_fold_may_be_numpys(tmp_path):
    Run([1.0], fold=np.int64(1)).save(tmp_path / "run.parquet")
    assert Run.load(tmp_path / "run.parquet").fold == 1
