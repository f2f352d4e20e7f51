"""The desktop preset: settings by hand, trainings that cells share, mixed precision, and how long it takes."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from undermargin.cli import app
from undermargin.errors import FolderError
from undermargin.paper import EXPERIMENTS, PRESETS, Results, Runner, Store, names
from undermargin.paper.cell import Cell
from undermargin.paper.estimate import expected_seconds, samples_per_second, work
from undermargin.paper.experiments.grid import cell as row_cell
from undermargin.paper.experiments.grid import row_of
from undermargin.paper.kinds import KINDS
from undermargin.paper.prepared import lesson, prepare
from undermargin.paper.record import MOST_BYTES, Record
from undermargin.paper.shared import IDENTIFIERS, aum, stages
from undermargin.paper.study import SMOKE, STUDIES
from undermargin.procedure import Procedure

DIGITS = Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard")


def desktop_cells():
    return {cell.key: cell for name in names("desktop") for cell in EXPERIMENTS[name].cells("desktop")}.values()


def test_the_desktop_trains_all_of_the_papers_images_by_a_shorter_schedule():
    study = STUDIES["desktop"]["cifar10"]
    paper = STUDIES["paper"]["cifar10"]
    assert (study.model, study.num_train, study.num_test) == ("resnet32-half", 45_000, None)
    assert (study.budget.batch_size, study.fold_batch_size) == (256, 64) == (paper.budget.batch_size, 64)
    assert replace(study.budget, epochs=300) == paper.budget
    assert [study.budget.rate(epoch) for epoch in (29, 30, 44, 45)] == pytest.approx([0.1, 0.01, 0.01, 0.001])
    fold = aum(Cell("fit", "desktop", "cifar10")).budget(study.budget)
    assert (fold.epochs, fold.batch_size, fold.drops) == (30, 64, ())


def test_the_tables_without_augmentation_are_complete():
    found = {
        (row_of(cell), cell.noise, cell.rate, cell.seed)
        for cell in desktop_cells()
        if cell.kind in ("fit", "cleaned") and not {"augmentation", "percentile"} & set(dict(cell.vary))
    }
    rows = ("standard", "aum", f"aum, {Procedure.default.cutoff}", "bmm", "gmm", "co_teaching", "oracle")
    settings = [("uniform", rate) for rate in (0.2, 0.4, 0.6, 0.8)] + [("asymmetric", 0.2), ("asymmetric", 0.4)]
    wanted = {(row, *setting, seed) for row in rows for setting in settings for seed in range(1 + (setting[1] == 0.4))}
    assert wanted <= found
    assert {one[1:3] for one in found - wanted} == {("none", 0.0)}


def test_the_table_with_augmentation_trains_for_the_papers_300_epochs():
    long = [cell for cell in desktop_cells() if cell.option("epochs") == 300]
    assert {cell.study.augmentation for cell in long} == {"crops"}
    assert {cell.study.budget for cell in long} == {STUDIES["paper"]["cifar10"].budget}
    default = f"aum, {Procedure.default.cutoff}"
    for setting in (("uniform", 0.4), ("asymmetric", 0.4), ("uniform", 0.2)):
        rows = {row_of(cell) for cell in long if (cell.noise, cell.rate) == setting}
        assert rows == {"standard", "aum", default, "oracle"}


def test_cells_of_one_setting_share_the_trainings_that_they_judge_by():
    base = [row_cell("desktop", "cifar10", ("uniform", 0.4), row) for row in ("aum", "aum, auto", "bmm", "gmm")]
    others = [base[0].varied(percentile=90), Cell("removal", "desktop", "cifar10", "uniform", 0.4)]
    identified = Cell("identification", "desktop", "cifar10", "uniform", 0.4).varied(cutoff="auto")
    assert len({cell.folds_key for cell in (*base, *others, identified)}) == 1
    assert [stages(cell) for cell in base] == [("fold0", "fold1")] * 2 + [("plain",)] * 2
    assert stages(identified) == ("fold0", "fold1", "plain")
    assert stages(row_cell("desktop", "cifar10", ("uniform", 0.4), "standard")) == ()
    augmented = base[0].varied(augmentation="crops")
    assert augmented.folds_key != base[0].folds_key


def test_another_default_cutoff_is_another_cell_that_reads_the_same_folds(monkeypatch):
    now = row_cell("desktop", "cifar10", ("uniform", 0.4), "aum, auto")
    monkeypatch.setitem(IDENTIFIERS, "aum, per_class", ("aum", "per_class"))
    later = row_cell("desktop", "cifar10", ("uniform", 0.4), "aum, per_class")
    assert (later.key != now.key, later.folds_key == now.folds_key) == (True, True)
    assert row_of(later) == "aum, per_class"


def test_a_recorded_training_gives_the_scores_of_the_tracker_that_watched_it(tmp_path):
    taught = replace(lesson(DIGITS, prepare(DIGITS, tmp_path, tmp_path), tmp_path, ("aum", "last_loss")), folder=None)
    path = tmp_path / "training.logits"
    _, watching = taught.train("training", Record(path, taught))
    replayed = Record(path, taught, is_whole=True).replayed()
    np.testing.assert_array_equal(replayed.scores("aum"), watching.scores("aum")[:240])
    # a logarithm of sums may be rounded differently in batches of another size
    np.testing.assert_allclose(replayed.scores("last_loss"), watching.scores("last_loss")[:240], rtol=1e-6)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FolderError, match=r"training.logits cannot be read: .*; delete its folder to train again"):
        Record(path, taught, is_whole=True)


def test_recording_a_training_does_not_change_it(tmp_path):
    taught = replace(lesson(DIGITS, prepare(DIGITS, tmp_path, tmp_path), tmp_path), folder=None)
    _, plain = taught.train("plain")
    _, recorded = taught.train("recorded", Record(tmp_path / "logits", taught))
    np.testing.assert_array_equal(plain.scores("aum"), recorded.scores("aum"))


def test_logits_too_many_for_a_file_are_not_recorded_and_the_scores_are_the_same(tmp_path, monkeypatch):
    cell = Cell("identification", "smoke", "mnist", "uniform", 0.4)
    found = []
    for most in (MOST_BYTES, 0):
        monkeypatch.setattr("undermargin.paper.record.MOST_BYTES", most)
        store = Store(tmp_path / str(most))
        Runner(store, tmp_path).run([cell])
        found.append(store.results()[cell.key])
        assert bool(list(store.records(cell).glob("*.logits"))) == (most > 0)
    assert found[0]["numbers"] == found[1]["numbers"]
    assert "shared" not in found[1]


def test_a_training_without_flagged_samples_says_what_was_flagged_and_memorized(tmp_path):
    cell = row_cell("smoke", "mnist", ("uniform", 0.4), "gmm")
    store = Store(tmp_path)
    Runner(store, tmp_path).run([cell])
    row = store.results()[cell.key]
    assert (row["kind"], row["vary"]) == ("cleaned", {"score": "last_loss", "cutoff": "gaussian"})
    assert {"precision", "recall", "flagged_share"} <= set(row["numbers"]["verdicts"])
    shares = row["numbers"]["memorized"]
    assert set(shares) == {"clean", "flipped", "corrected"}
    assert shares["flipped"] + shares["corrected"] <= 1


def test_standard_training_without_noise_has_nothing_to_memorize(tmp_path):
    cell = Cell("fit", "smoke", "mnist", recipe="standard")
    Runner(Store(tmp_path), tmp_path).run([cell])
    assert "memorized" not in Store(tmp_path).results()[cell.key]["numbers"]


MIXED = """
import json, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from undermargin.paper import Runner, Store
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import lesson, prepare, precision
from undermargin.paper.record import Record
from undermargin.paper.study import SMOKE, STUDIES

STUDIES["desktop"]["cifar10"] = replace(SMOKE, precision="mixed")
out = Path(sys.argv[1])
cell = Cell("fit", "desktop", "cifar10", "uniform", 0.4)
Runner(Store(out), out).run([cell])
row = Store(out).results()[cell.key]
taught = replace(lesson(cell, prepare(cell, out, out), out), folder=None)
_, watching = taught.train("training", Record(out / "logits", taught))
replayed = Record(out / "logits", taught, is_whole=True).replayed()
same = bool(np.array_equal(replayed.scores(), watching.scores()[:240]))
print(json.dumps({"stored": row.get("precision", "no"), "used": precision(cell.study), "same": same}))
"""


def test_mixed_precision_is_used_where_there_are_instructions_for_it_and_recorded_exactly(tmp_path):
    """In a process of its own, since Accelerate allows one precision per process."""
    words = [sys.executable, "-c", MIXED, str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    said = json.loads(done.stdout)
    assert said["stored"] == said["used"]
    assert said["same"]


def test_precision_is_part_of_a_key_only_where_it_is_mixed():
    assert "precision" not in DIGITS.settings()["study"]
    assert Cell("fit", "desktop", "cifar10").settings()["study"]["precision"] == "mixed"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_work_of_every_cell_is_known(preset):
    cells = [cell for name in names(preset) for cell in EXPERIMENTS[name].cells(preset)]
    assert {cell.kind for cell in cells} <= set(KINDS)
    assert all(sum(part.epochs for part in work(cell)) > 0 for cell in cells)


def test_hours_are_counted_from_a_timed_step_and_shared_trainings_once(tmp_path, monkeypatch):
    monkeypatch.setattr("undermargin.paper.estimate.samples_per_second", lambda study, batch_size: 45_000 / 10)
    results = Results.read(Store(tmp_path), "desktop", tmp_path)
    rows = ("standard", "oracle", "aum", "aum, auto", "bmm", "gmm", "co_teaching")
    cells = [row_cell("desktop", "cifar10", ("uniform", 0.4), row) for row in rows]
    # an epoch takes 10 seconds: 60 epochs, on 60 % of the samples; two folds of 30 epochs; one plain training of 30
    whole, part, folds, plain = 600, 360, 600, 300
    assert expected_seconds(cells, results) == pytest.approx(
        [whole, part, folds + part, part, plain + part, part, 2 * whole]
    )


def test_a_dry_run_of_the_desktop_says_how_many_hours_it_takes(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("undermargin.paper.estimate.samples_per_second", lambda study, batch_size: 45_000 / 10)
    words = ["table-cifar-uniform", "--preset", "desktop", "--only", "standard", "--dry-run"]
    app(["paper", *words, "--data", str(tmp_path), "--out", str(tmp_path / "out")], standalone_mode=False)
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "0 of 5 cells have been run",
        "5 to run take about 0.8 hours one after the other",  # 5 x 600 seconds
    ]
    assert not (tmp_path / "out").exists()


def test_a_step_is_timed_without_the_data():
    assert samples_per_second(SMOKE, batch_size=32) > 0


def test_only_an_identifier_can_be_asked_for(tmp_path, capfd):
    words = ["paper", "table-cifar-uniform", "--preset", "smoke", "--only", "bmm", "--dry-run", "--json"]
    app([*words, "--data", str(tmp_path), "--out", str(tmp_path / "out")], standalone_mode=False)
    (row,) = json.loads(capfd.readouterr().out)
    assert row["cell"] == "cleaned aum on cifar10, uniform 40%, seed 0, cutoff beta, score last_loss"
