"""The authors' interface: their package stands beside ours wherever theirs works."""

import csv
import pickle

import aum as theirs
import pytest
import torch

from undermargin.compat import aum as ours
from undermargin.errors import InputError, UndermarginWarning


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def batches(rng, num=7, ids=None):
    for _ in range(num):
        chosen = rng.permutation(20)[:6].tolist()
        yield (
            torch.tensor(rng.normal(size=(6, 4)), dtype=torch.float32),
            torch.tensor(rng.integers(0, 4, 6)),
            [f"s{index:02d}" for index in chosen] if ids is str else chosen,
        )


@pytest.mark.parametrize("ids", [int, str])
def test_every_update_returns_the_records_theirs_returns(ids, rng, tmp_path):
    mine, original = ours.AUMCalculator(str(tmp_path)), theirs.AUMCalculator(str(tmp_path))
    for logits, targets, sample_ids in batches(rng, ids=ids):
        records, expected = (
            mine.update(logits, targets, sample_ids),
            original.update(logits, targets, sample_ids),
        )
        assert list(records) == list(expected)
        for sample, record in expected.items():
            got, wanted = vars(records[sample]), vars(record)
            assert got.pop("sample_id") == wanted.pop("sample_id") == sample
            assert got == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("compressed", [True, False])
def test_the_same_files_are_written(compressed, rng, tmp_path):
    mine = ours.AUMCalculator(str(tmp_path / "ours"), compressed=compressed)
    original = theirs.AUMCalculator(str(tmp_path / "theirs"), compressed=compressed)
    for batch in batches(rng, ids=str):
        mine.update(*batch)
        original.update(*batch)
    mine.finalize()
    original.finalize()
    names = ["aum_values.csv"] if compressed else ["aum_values.csv", "full_aum_records.csv"]
    assert sorted(path.name for path in (tmp_path / "ours").iterdir()) == names
    for name in names:
        assert (tmp_path / "ours" / name).read_text() == (tmp_path / "theirs" / name).read_text()


def test_records_looked_at_late_are_those_of_their_update(rng):
    calculator = ours.AUMCalculator(None)
    first = calculator.update(torch.tensor([[3.0, 1.0]]), torch.tensor([0]), ["a"])
    second = calculator.update(torch.tensor([[5.0, 1.0]]), torch.tensor([0]), ["a"])
    calculator.update(torch.tensor([[9.0, 1.0]]), torch.tensor([0]), ["a"])
    assert (first["a"].aum, first["a"].num_measurements) == (2.0, 1)
    assert (second["a"].aum, second["a"].num_measurements) == (3.0, 2)


def test_a_batch_overwritten_after_the_update_does_not_change_its_records():
    calculator = ours.AUMCalculator(None)
    logits, targets = torch.tensor([[3.0, 1.0]]), torch.tensor([0])
    records = calculator.update(logits, targets, ["a"])
    logits.zero_()
    assert records["a"].margin == 2.0


def test_tensor_ids_and_a_batch_of_one_work():
    calculator = ours.AUMCalculator(None)
    for _ in range(2):
        records = calculator.update(torch.tensor([[3.0, 1.0]]), torch.tensor([0]), torch.tensor([7]))
    assert records == {7: ours.AUMRecord(7, 2, 0, 3.0, 1, 1.0, 2.0, 2.0)}


def test_a_sample_twice_in_a_batch_is_two_measurements(tmp_path):
    logits, targets, ids = torch.tensor([[3.0, 1.0], [1.0, 3.0]]), torch.tensor([0, 0]), ["a", "a"]
    mine, original = (
        package.AUMCalculator(str(tmp_path / name), compressed=False)
        for name, package in (("ours", ours), ("theirs", theirs))
    )
    assert {k: vars(v) for k, v in mine.update(logits, targets, ids).items()} == {
        k: vars(v) for k, v in original.update(logits, targets, ids).items()
    }
    mine.finalize()
    original.finalize()
    assert (tmp_path / "ours/full_aum_records.csv").read_text() == (
        tmp_path / "theirs/full_aum_records.csv"
    ).read_text()


def test_ids_need_not_be_known_beforehand(rng, tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    for start in range(0, 5000, 500):
        logits = torch.tensor([[1.0, 0.0]]).repeat(500, 1) * start
        calculator.update(logits, torch.zeros(500).long(), list(range(start, start + 500)))
    calculator.finalize()
    rows = {int(row["sample_id"]): float(row["aum"]) for row in read(tmp_path / "aum_values.csv")}
    assert rows == {index: float(index // 500 * 500) for index in range(5000)}


def test_counts_sums_and_records_are_there_and_the_calculator_pickles(rng):
    mine, original = ours.AUMCalculator(None, compressed=False), theirs.AUMCalculator(None, compressed=False)
    for batch in batches(rng, ids=str):
        held = mine.update(*batch)
        original.update(*batch)
    for calculator in (mine, pickle.loads(pickle.dumps(mine))):
        assert calculator.counts == dict(original.counts)
        assert calculator.sums == dict(original.sums)
        assert [vars(record) for record in calculator.records] == [vars(record) for record in original.records]
    assert len(held) == 6


def test_targets_in_a_column_and_ids_as_a_list_of_tensors_work():
    calculator = ours.AUMCalculator(None)
    ids = [torch.tensor(3), torch.tensor(5)]
    records = calculator.update(torch.tensor([[3.0, 1.0], [1.0, 2.0]]), torch.tensor([[0], [1]]), ids)
    assert {sample: record.margin for sample, record in records.items()} == {3: 2.0, 5: 1.0}


def test_a_sample_without_a_finite_measurement_comes_last_without_a_number(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    calculator.update(torch.tensor([[torch.nan, 1.0], [1.0, 2.0]]), torch.tensor([0, 0]), ["a", "b"])
    with pytest.warns(UndermarginWarning, match="were ignored: non-finite logits: 1"):
        calculator.finalize()
    assert (tmp_path / "aum_values.csv").read_text() == "sample_id,aum\nb,-1.0\na,\n"


def test_a_target_without_a_logit_is_said(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    records = calculator.update(torch.randn(2, 3), torch.tensor([5, 1]), [0, 1])
    with pytest.raises(InputError, match=r"targets range from 1 to 5, expected 0\.\.2"):
        records[0]
    with pytest.warns(UndermarginWarning, match="label too large: 1"):
        calculator.finalize()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_first_records_margin_is_its_aum_in_half_precision_too(dtype, rng):
    logits = torch.tensor(rng.normal(size=(8, 5)) * 3).to(dtype)
    records = ours.AUMCalculator(None).update(logits, torch.arange(8) % 5, list(range(8)))
    assert [record.margin for record in records.values()] == [record.aum for record in records.values()]


def test_the_file_is_sorted_by_aum_from_high_to_low(rng, tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    for batch in batches(rng):
        calculator.update(*batch)
    calculator.finalize(str(tmp_path / "elsewhere"))
    values = [float(row["aum"]) for row in read(tmp_path / "elsewhere" / "aum_values.csv")]
    assert values == sorted(values, reverse=True)


def test_records_as_a_frame_are_sorted():
    record = ours.AUMRecord("b", 1, 0, 1.0, 1, 0.0, 1.0, 1.0)
    frame = ours.AUMCalculator.records_to_df([record, ours.AUMRecord("a", 1, 0, 1.0, 1, 0.0, 1.0, 1.0)])
    assert list(frame["sample_id"]) == ["a", "b"]


def test_the_data_set_gives_the_index_last():
    data = [("x", 0), ("y", 1)]
    mine, original = ours.DatasetWithIndex(data), theirs.DatasetWithIndex(data)
    assert len(mine) == len(original) == 2
    assert mine[1] == original[1] == ("y", 1, 1)


def test_nowhere_to_write_is_an_error():
    with pytest.raises(InputError, match="save_dir is None"):
        ours.AUMCalculator(None).finalize()


def test_nothing_observed_writes_an_empty_file(tmp_path):
    ours.AUMCalculator(str(tmp_path)).finalize()
    assert (tmp_path / "aum_values.csv").read_text() == "sample_id,aum\n"


def test_what_did_not_count_is_said_also_after_more_ids_have_come(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    calculator.update(torch.tensor([[torch.nan, 0.0], [1.0, 0.0]]), torch.tensor([0, 0]), ["bad", "good"])
    for start in range(0, 3000, 1000):
        ids = [str(number) for number in range(start, start + 1000)]
        calculator.update(torch.zeros(1000, 2), torch.zeros(1000, dtype=torch.long), ids)
    with pytest.warns(UndermarginWarning, match="non-finite logits: 1"):
        calculator.finalize()


def test_the_sums_of_all_samples_are_read_twice_and_not_once_a_sample(tmp_path, monkeypatch):
    calculator = ours.AUMCalculator(str(tmp_path))
    calculator.update(torch.zeros(300, 2), torch.zeros(300, dtype=torch.long), list(range(300)))
    read = []
    column = ours.AUMCalculator._column
    monkeypatch.setattr(ours.AUMCalculator, "_column", lambda self, number: read.append(number) or column(self, number))
    calculator.finalize()
    assert read == [0, 1]


def test_sums_and_counts_are_read_once_after_an_update_and_cannot_be_changed_in_silence(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    calculator.update(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 0]), [7, 8])
    assert calculator.sums is calculator.sums
    assert (calculator.sums, calculator.counts) == ({7: 1.0, 8: 3.0}, {7: 1, 8: 1})
    assert calculator.sums["never seen"] == 0
    with pytest.raises(TypeError, match="create another AUMCalculator"):
        calculator.counts.clear()
    assert pickle.loads(pickle.dumps(calculator.sums)) == {7: 1.0, 8: 3.0}
    calculator.update(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), [7])
    assert (calculator.sums[7], calculator.counts[7]) == (2.0, 2)


def test_ids_of_several_types_are_written_too(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path), compressed=False)
    calculator.update(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 0]), ["a", 1])
    calculator.finalize()
    rows = (tmp_path / "full_aum_records.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["1", "a"]


def test_the_id_of_a_batch_of_one_may_be_a_tensor_without_an_axis(tmp_path):
    calculator = ours.AUMCalculator(str(tmp_path))
    assert list(calculator.update(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), torch.tensor(5))) == [5]
