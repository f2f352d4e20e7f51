import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undermargin import Run, Verdicts, identify
from undermargin.errors import InputError
from undermargin.storage.json import to_json

COLUMNS = ["index", "id", "label", "score", "verdict", "suggested_label"]


@pytest.fixture
def verdicts():
    run = Run(
        scores=[3.0, -2.0, 0.0, 5.0, np.nan],
        is_threshold=[False, False, True, False, False],
        labels=[0, 1, 0, 1, 0],
        ids=["a.png", "b.png", "c.png", "d.png", "e, f.png"],
        class_names=["cat", "dog"],
        suggested_labels=[-1, 0, -1, -1, -1],
        suggestion_confidence=[0, 0.75, 0, 0, 0],
    )
    return identify(run)


def test_indices_and_masks(verdicts):
    assert verdicts.flagged.tolist() == [1]
    assert verdicts.kept.tolist() == [0, 3]
    assert verdicts.unjudged.tolist() == [2, 4]
    assert verdicts.is_flagged.tolist() == [False, True, False, False, False]
    assert verdicts.is_kept.tolist() == [True, False, False, True, False]
    assert verdicts.order.tolist()[:3] == [1, 0, 3]
    assert str(verdicts) == "1 of 5 labels look wrong (20.0%), 2 unjudged"


def test_the_table_starts_with_the_six_columns_most_suspicious_first(verdicts):
    table = verdicts.to_arrow()
    assert table.column_names[:6] == COLUMNS
    first = table.to_pylist()[0]
    assert [first[name] for name in COLUMNS] == [1, "b.png", "dog", -2.0, "flagged", "cat"]
    assert table["index"].to_pylist()[:3] == [1, 0, 3]


def test_pandas_and_polars_frames_hold_the_same(verdicts):
    frame, polar = verdicts.to_pandas(), verdicts.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polar, pl.DataFrame)
    assert list(frame["id"]) == polar["id"].to_list() == verdicts.to_arrow()["id"].to_pylist()


def assert_same(loaded, verdicts):
    np.testing.assert_array_equal(loaded.codes, verdicts.codes)
    np.testing.assert_array_equal(loaded.scores, verdicts.scores)
    np.testing.assert_array_equal(loaded.order, verdicts.order)
    np.testing.assert_array_equal(loaded.judged_by, verdicts.judged_by)
    np.testing.assert_array_equal(loaded.fold_scores, verdicts.fold_scores)
    for name in ("labels", "suggested_labels"):
        ours, theirs = getattr(loaded, name), getattr(verdicts, name)
        if theirs is None:
            assert ours is None
        else:
            assert [loaded.name(i) for i in ours] == [verdicts.name(i) for i in theirs]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_saving_and_loading_gives_the_same_verdicts(verdicts, suffix, tmp_path):
    path = tmp_path / f"verdicts{suffix}"
    verdicts.save(path)
    loaded = Verdicts.load(path)
    assert_same(loaded, verdicts)
    assert loaded.ids == verdicts.ids
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written stays behind


def test_parquet_keeps_the_whole_summary(verdicts, tmp_path):
    verdicts.save(tmp_path / "v.parquet")
    assert Verdicts.load(tmp_path / "v.parquet").summary() == json.loads(to_json(verdicts.summary()))


def test_class_names_that_only_look_like_numbers_and_many_folds_survive_a_csv(tmp_path):
    run = Run([1.0, -3.0, 0.0], [False, False, True], labels=[1, 0, 1], class_names=["01", "02"])
    verdicts = identify(
        [Run(run.scores + fold, run.is_threshold, labels=run.labels, class_names=run.class_names) for fold in range(12)]
    )
    verdicts.save(tmp_path / "v.csv")
    assert_same(Verdicts.load(tmp_path / "v.csv"), verdicts)


def test_the_csv_opens_as_a_plain_table(verdicts, tmp_path):
    verdicts.save(tmp_path / "v.csv")
    frame = pd.read_csv(tmp_path / "v.csv")
    assert list(frame.columns)[:6] == COLUMNS
    assert frame.loc[0, "id"] == "b.png"


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_without_ids_and_names_the_index_and_the_number_stand_in(suffix, tmp_path):
    verdicts = identify(Run([1.0, -3.0, 0.0], [False, False, True], labels=[2, 0, 1]))
    verdicts.save(tmp_path / f"v{suffix}")
    table = verdicts.to_arrow()
    assert table["id"].to_pylist() == ["1", "0", "2"]
    assert table["label"].to_pylist() == ["0", "2", "1"]
    assert_same(Verdicts.load(tmp_path / f"v{suffix}"), verdicts)


text = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5, width=32), text, st.integers(0, 2)), min_size=2, max_size=12))
def test_any_names_survive_parquet_and_csv(tmp_path_factory, samples):
    folder = tmp_path_factory.mktemp("v")
    run = Run(
        [s[0] for s in samples],
        np.arange(len(samples)) == 0,
        labels=[s[2] for s in samples],
        ids=[f"{k}{s[1]}" for k, s in enumerate(samples)],
        class_names=['=cmd|"x"', "a,b", "<script>"],
    )
    verdicts = identify(run)
    for name in ("v.parquet", "v.csv"):
        verdicts.save(folder / name)
        loaded = Verdicts.load(folder / name)
        assert_same(loaded, verdicts)
        assert loaded.ids == run.ids


def test_cleaning_a_torch_data_set_leaves_out_the_flagged(verdicts):
    dataset = torch.utils.data.TensorDataset(torch.arange(5))
    assert [int(sample[0]) for sample in verdicts.clean(dataset)] == [0, 2, 3, 4]


def test_cleaning_a_hugging_face_data_set_selects(verdicts):
    datasets = pytest.importorskip("datasets")
    cleaned = verdicts.clean(datasets.Dataset.from_dict({"x": [0, 1, 2, 3, 4]}))
    assert cleaned["x"][:] == [0, 2, 3, 4]


def test_frames_and_arrays_keep_their_type(verdicts):
    assert verdicts.clean(pd.DataFrame({"x": range(5)}))["x"].tolist() == [0, 2, 3, 4]
    assert verdicts.clean(pl.DataFrame({"x": range(5)}))["x"].to_list() == [0, 2, 3, 4]
    assert verdicts.clean(np.arange(5)).tolist() == [0, 2, 3, 4]
    assert list(verdicts.clean(torch.arange(5))) == [0, 2, 3, 4]


def test_an_arrow_table_loses_rows_and_not_columns(verdicts):
    table = pa.table({"x": range(5), "y": range(5)})
    assert verdicts.clean(table)["x"].to_pylist() == [0, 2, 3, 4]


def test_a_subset_of_one_verdict(verdicts):
    assert list(verdicts.subset(range(5), "flagged")) == [1]
    assert list(verdicts.subset(range(5), "kept")) == [0, 3]
    with pytest.raises(InputError, match="no verdict 'bad'"):
        verdicts.subset(range(5), "bad")


def test_cleaning_another_data_set_is_an_error(verdicts):
    with pytest.raises(InputError, match="the data set has 3 samples, the verdicts are of 5"):
        verdicts.clean([1, 2, 3])


def test_the_summary_counts_classes(verdicts):
    summary = verdicts.summary()
    assert (summary["num_samples"], summary["num_flagged"], summary["num_kept"], summary["num_unjudged"]) == (
        5,
        1,
        2,
        2,
    )
    assert summary["flagged_share"] == pytest.approx(1 / 5)
    assert summary["estimated_noise_rate"] is None  # nothing was held out to estimate it from
    assert summary["classes"][1] == {"label": "dog", "num_samples": 2, "num_flagged": 1, "flagged_share": 0.5}
    assert summary["cutoff"]["name"] == "paper"
    json.loads(to_json(summary), parse_constant=pytest.fail)  # no Infinity, no NaN


def test_files_that_are_no_verdicts_are_refused(tmp_path):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    pd.DataFrame({"x": [1]}).to_csv(tmp_path / "other.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nonsense")
    for name in ("other.parquet", "broken.parquet", "missing.parquet"):
        with pytest.raises(InputError, match="holds no verdicts"):
            Verdicts.load(tmp_path / name)
    with pytest.raises(InputError, match="lacks the columns index, id, label"):
        Verdicts.load(tmp_path / "other.csv")


def test_missing_and_repeated_rows_are_refused(verdicts, tmp_path):
    verdicts.to_pandas().iloc[1:].to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(InputError, match="rows are missing or repeated"):
        Verdicts.load(tmp_path / "short.csv")


def test_a_verdict_that_is_none_is_refused(verdicts, tmp_path):
    frame = verdicts.to_pandas().replace({"verdict": {"kept": "keep"}})
    frame.to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(InputError, match="2 verdicts are none, first 'keep'; expected flagged, kept, unjudged"):
        Verdicts.load(tmp_path / "v.csv")


def test_a_table_without_what_verdicts_are_ordered_by_is_refused(verdicts, tmp_path):
    verdicts.to_pandas()[COLUMNS].to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(InputError, match="lacks the columns score_minus_cutoff, judged_by"):
        Verdicts.load(tmp_path / "v.csv")


def test_many_ids_of_several_lines_survive_a_csv(tmp_path):
    ids = [f"text {number}\nsecond line\nthird" for number in range(60_000)]  # more than is read at once
    identify(Run(scores=np.arange(60_000.0), ids=ids), 9.5).save(tmp_path / "v.csv")
    assert Verdicts.load(tmp_path / "v.csv").ids == ids


def test_another_ending_is_refused(verdicts, tmp_path):
    with pytest.raises(InputError, match=r"as \.parquet or \.csv"):
        verdicts.save(tmp_path / "v.xlsx")


def test_a_data_set_of_a_package_that_is_called_datasets_too_becomes_a_subset(verdicts):
    class Own(torch.utils.data.Dataset):
        def __len__(self):
            return len(verdicts)

        def __getitem__(self, index):
            return index

    Own.__module__ = "datasets.cifar"
    assert len(verdicts.clean(Own())) == len(verdicts) - len(verdicts.flagged)


def test_postal_codes_are_names_and_not_numbers_of_classes(run, tmp_path):
    names = ["10001", "9021012345678"]
    found = identify(run([0, 1, 2, 3], threshold=[1], labels=[0, 1, 0, 1], class_names=names))
    found.save(tmp_path / "verdicts.csv")
    assert [row["label"] for row in Verdicts.load(tmp_path / "verdicts.csv").summary()["classes"]] == names


def test_classes_called_na_survive_an_editor_that_drops_quotes(run, tmp_path):
    path = tmp_path / "verdicts.csv"
    identify(run([0, 1, 2, 3], threshold=[1], labels=[0, 1, 0, 1], class_names=["NA", "null"])).save(path)
    path.write_text(path.read_text().replace('"', ""))
    assert [row["label"] for row in Verdicts.load(path).summary()["classes"]] == ["NA", "null"]


def test_a_label_that_is_missing_in_some_rows_is_refused(verdicts, tmp_path):
    path = tmp_path / "verdicts.csv"
    verdicts.save(path)
    rows = path.read_text().splitlines()
    cells = rows[1].split(",")
    cells[2] = ""
    path.write_text("\n".join([rows[0], ",".join(cells), *rows[2:]]) + "\n")
    with pytest.raises(InputError, match=f"1 of {len(verdicts)} samples have no label"):
        Verdicts.load(path)


def test_a_frame_of_a_library_that_is_not_there_says_how_to_get_it(verdicts, monkeypatch):
    monkeypatch.setattr("undermargin.verdicts.record.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pandas is not installed: pip install 'undermargin\[pandas\]'"):
        verdicts.to_pandas()
    with pytest.raises(InputError, match="polars is not installed"):
        verdicts.to_polars()


def test_a_file_that_somebody_spoiled_is_said_to_be_in_one_line(tmp_path):
    path = tmp_path / "verdicts.csv"
    identify(Run([1.0, 2.0]), 1.5).save(path)
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    cells[3] = "hello"
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]))
    with pytest.raises(InputError, match="holds something else than undermargin wrote: .*hello"):
        Verdicts.load(path)
