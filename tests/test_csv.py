"""Text that a spreadsheet would run as a formula is made plain, and comes back as it was."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scan_folders import make_scan
from undermargin import Run, Verdicts, identify
from undermargin.errors import InputError
from undermargin.review.sheet import exchange
from undermargin.scans.decisions import Change, Decision
from undermargin.storage.csv import guard, guard_table, read_rows, unguard, unguard_column, write_rows


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


@given(st.text("'=+-@\t\r1.e a\n", max_size=6))
def test_single_texts_are_guarded_as_whole_tables_are(text):
    assert guard(text) == cell(text)
    assert unguard(guard(text)) == text


@given(st.lists(st.tuples(st.text("'=+-@\t1,\" a\n", max_size=6), st.integers()), max_size=5))
def test_rows_come_back_as_they_were(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    write_rows(path, ("=name", "n"), rows)
    assert [(row["=name"], int(row["n"])) for _, row in read_rows(path)] == rows


def test_line_numbers_and_what_is_wrong_are_told(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text('id,action\n"a\nb",keep\nc,drop\n')
    assert [(line, row["id"]) for line, row in read_rows(path)] == [(3, "a\nb"), (4, "c")]
    with pytest.raises(InputError, match="d.csv has no column who, when; columns are id, action"):
        list(read_rows(path, ("id", "who", "when")))
    path.write_text("id,action\na,keep,more\n")
    with pytest.raises(InputError, match="d.csv, line 2: more cells than the 2 columns"):
        list(read_rows(path))
    path.write_bytes(b"id\n\xff\n")
    with pytest.raises(InputError, match="d.csv cannot be read as CSV"):
        list(read_rows(path))


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


def test_exported_decisions_hold_no_formula_and_can_be_imported_again(tmp_path):
    frame = pd.DataFrame({"id": [f"=cmd|{n}" for n in range(8)], "x": [1.5, 2.5] * 4, "label": ["@a", "b"] * 4})
    folder = make_scan(frame, tmp_path / "scan", flagged=[1])
    log = folder.decisions()
    log.decide([Change(1, Decision("relabel", "@a", "=HYPERLINK()"))], who="+anna")
    before = log.latest()
    log.close()
    exchange(folder, None, tmp_path / "out.csv")
    cells = (tmp_path / "out.csv").read_text().splitlines()[1].split(",")
    assert [cells[0], cells[2], cells[3], cells[5]] == ["'=cmd|1", "'@a", "'=HYPERLINK()", "'+anna"]
    assert exchange(folder, tmp_path / "out.csv", None) == {"num_imported": 1, "num_replaced": 0}
    log = folder.decisions()
    assert log.latest() == before
    log.close()
