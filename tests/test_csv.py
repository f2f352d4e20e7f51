"""Text that a spreadsheet would run is made plain, and comes back as it was."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undermargin import Run, Verdicts, identify
from undermargin.storage.csv import guard_table, unguard_column


def cell(text):
    return guard_table(pa.table({"x": [text]}))["x"][0].as_py()


@pytest.mark.parametrize("text", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "-", '=cmd|"/c calc"!A1'])
def test_what_looks_like_a_formula_gets_an_apostrophe(text):
    assert cell(text) == "'" + text


@pytest.mark.parametrize("text", ["cat", "", "a=b", "1-2", "-1", "+3.5", "-2e-5", "0", "'quoted'"])
def test_other_text_and_numbers_stay_as_they_are(text):
    assert cell(text) == text


def test_numbers_and_missing_values_are_not_touched():
    table = pa.table({"score": [-1.5, None], "id": ["=x", None]})
    assert guard_table(table).to_pydict() == {"score": [-1.5, None], "id": ["'=x", None]}


@given(st.lists(st.text("'=+-@\t\r1.e a", max_size=6), min_size=1))
def test_restoring_gives_back_every_text(texts):
    assert unguard_column(guard_table(pa.table({"x": pa.array(texts, pa.string())}))["x"]).to_pylist() == texts


def test_the_verdicts_csv_holds_no_formula_and_still_loads(tmp_path):
    run = Run(
        [1.0, -3.0, 0.0], [False, False, True], labels=[0, 1, 0], ids=["=a", "'=b", "c"], class_names=["@x", "-1"]
    )
    verdicts = identify(run)
    verdicts.save(tmp_path / "v.csv")
    frame = pd.read_csv(tmp_path / "v.csv", dtype=str)
    assert set(frame["id"]) == {"'=a", "''=b", "c"}
    assert set(frame["label"]) == {"'@x", "-1"}
    assert Verdicts.load(tmp_path / "v.csv").ids == run.ids
    verdicts.save(tmp_path / "v.parquet")
    assert set(pd.read_parquet(tmp_path / "v.parquet")["id"]) == set(run.ids)
