"""The paper's experiments: what a cell measures, tables and figures, and a smoke test of everything."""

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from undermargin.errors import InputError
from undermargin.paper import EXPERIMENTS, Results, Runner, Store, chosen, figures, write
from undermargin.paper.cell import Cell
from undermargin.paper.kinds import KINDS
from undermargin.paper.prepared import prepare
from undermargin.paper.shared import Place, fold_runs
from undermargin.paper.tables import Table
from undermargin.recipes import Lesson
from undermargin.sources.digits import load_digits
from undermargin.sources.official.record import OfficialSet

ERRORS = {"table-mnist", "table-cifar-uniform", "table-cifar-asymmetric", "table-tiny-imagenet", "table-real"}


def reproduce(name, runner):
    """Run an experiment of the smoke preset and write its files."""
    runner.run(chosen(name, "smoke").cells("smoke"))
    return write(name, Results.read(runner.store, "smoke", runner.root))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_without_results_nothing_is_written_and_a_divergence_is_named_in_the_tables_of_errors(name, tmp_path):
    store = Store(tmp_path)
    assert write(name, Results.read(store, "smoke", tmp_path)) == []
    for cell in EXPERIMENTS[name].cells("smoke"):
        store.add(cell, {"diverged": "in epoch 1"}, {"seconds": 1.0, "commit": ""})
    files = write(name, Results.read(store, "smoke", tmp_path))
    assert bool(files) == (name in ERRORS)
    assert all("Diverged" in path.read_text() for path in files)


def test_a_figure_is_not_drawn_from_another_version_of_the_data(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    files = reproduce("figure-lowest", Runner(Store(tmp_path), tmp_path))
    results = Results.read(Store(tmp_path), "smoke", tmp_path)
    assert EXPERIMENTS["figure-lowest"].figures(results).keys() == {path.stem for path in files}
    digits = load_digits()
    other = OfficialSet(digits.train_images[::-1], digits.train_labels[::-1], list("0123456789"))
    monkeypatch.setattr("undermargin.paper.prepared.official_training_set", lambda study, root: other)
    assert EXPERIMENTS["figure-lowest"].figures(results) == {}


def test_names_below_neighboring_images_do_not_touch():
    pytest.importorskip("matplotlib")
    names = ["academic gown, academic robe, judge's robe", "Christmas stocking", "8"]
    figure = figures.grid([np.zeros((8, 8, 3), np.uint8)] * 3, names, "three", columns=3)
    figure.draw_without_rendering()
    first, second, third = (axis.texts[0].get_window_extent() for axis in figure.axes)
    assert first.x1 < second.x0
    assert second.x1 < third.x0
    assert figure.axes[2].texts[0].get_text() == "8"


def test_flagged_samples_are_listed_with_what_they_are_called_and_so_is_who_was_judged(tmp_path):
    cell = Cell("identification", "smoke", "mnist")
    prepared = prepare(cell, tmp_path, tmp_path)
    prepared = replace(prepared, names=[f"{index}.png" for index in prepared.indices])
    place = Place(tmp_path / "own", tmp_path, tmp_path)
    outcome = KINDS["identification"](cell, prepared, place)
    store = Store(tmp_path)
    store.add(cell, outcome.numbers, {"seconds": 1.0})
    (tmp_path / "arrays").mkdir()
    np.savez(tmp_path / "arrays" / f"{cell.key}.npz", **outcome.arrays)
    write("figure-densities", Results.read(store, "smoke", tmp_path))
    flagged, judged = (
        list(csv.DictReader((tmp_path / "tables" / "smoke" / f"{name}-mnist.csv").read_text().splitlines()))
        for name in ("flagged", "judged")
    )
    assert {int(row["index"]) for row in judged} == set(prepared.indices.tolist())
    aum = dict(zip(prepared.indices.tolist(), outcome.arrays["aum"].tolist(), strict=True))
    assert flagged
    for row in flagged:
        assert row["file"] == f"{row['index']}.png"
        assert float(row["aum"]) == pytest.approx(aum[int(row["index"])], abs=1e-3)


def test_the_cost_of_two_folds_is_that_of_as_many_epochs_as_they_have(tmp_path, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("undermargin.paper.kinds.time.perf_counter", lambda: next(clock))  # every epoch takes a second
    cell = Cell("cost", "smoke", "mnist").varied(epochs=12, drops=(0.25,))
    numbers = KINDS["cost"](cell, prepare(cell, tmp_path, tmp_path), Place(tmp_path, tmp_path, tmp_path)).numbers
    assert numbers["seconds"]["training"] / numbers["seconds"]["folds"] == 12 / (2 * 3)


def test_an_identifier_that_flags_nothing_has_no_precision_and_breaks_no_figure():
    pytest.importorskip("matplotlib")
    nothing, something = {"precision": None, "recall": 0.0}, {"precision": 0.5, "recall": 0.5}
    figure = figures.precision_recall({"bmm": [(0.2, [nothing]), (0.4, [something, nothing])]}, [0.2, 0.4], "two")
    assert figure.axes[0].lines[0].get_ydata().tolist() == pytest.approx([np.nan, 50], nan_ok=True)
    assert figure.axes[1].lines[0].get_ydata().tolist() == [0, 25]


def test_the_whole_smoke_preset_runs_and_writes_every_table_and_figure(tmp_path):
    pytest.importorskip("matplotlib")
    runner = Runner(Store(tmp_path), tmp_path)
    written = {name: reproduce(name, runner) for name in EXPERIMENTS}
    for name, files in written.items():
        assert files, name
        assert all(path.stat().st_size > 0 for path in files)
        if name.startswith("figure"):
            assert any(path.suffix == ".svg" for path in files)


def test_figures_and_tables_name_their_preset_and_are_made_again_without_running(tmp_path):
    pytest.importorskip("matplotlib")
    files = reproduce("figure-trajectories", Runner(Store(tmp_path), tmp_path))
    before = {path: path.read_bytes() for path in files}
    assert {path.suffix for path in before} == {".md", ".tex", ".csv", ".svg"}
    assert any(b"preset smoke" in text for text in before.values())
    again = write("figure-trajectories", Results.read(Store(tmp_path), "smoke", tmp_path))
    assert {path: path.read_bytes() for path in again} == before


def test_a_table_is_written_in_three_languages():
    table = Table("t", "Errors at 40 % (preset smoke)", ["recipe", "a_b"], [["aum", "1.0 ± 0.5"]])
    assert table.markdown() == (
        "**Errors at 40 % (preset smoke)**\n\n| recipe | a_b |\n| --- | ---: |\n| aum | 1.0 ± 0.5 |\n"
    )
    assert r"Errors at 40 \% (preset smoke)" in table.latex()
    assert r"aum & 1.0 $\pm$ 0.5 \\" in table.latex()
    assert r"a\_b" in table.latex()
    assert table.csv() == "recipe,a_b\naum,1.0 ± 0.5\n"


def test_a_missing_data_set_is_an_error_that_says_where_it_belongs(tmp_path):
    cell = Cell("fit", "laptop", "mnist", "uniform", 0.4, "standard")
    with pytest.raises(InputError, match="mnist is not in .*download it from .* and put it at"):
        Runner(Store(tmp_path), Path(tmp_path)).run([cell])


def test_an_unknown_experiment_is_an_error_that_names_the_known_ones():
    with pytest.raises(InputError, match="no experiment 'table-of-contents'; choose from table-mnist"):
        chosen("table-of-contents", "smoke")


def test_an_experiment_that_a_preset_lacks_is_an_error_that_names_those_it_has():
    with pytest.raises(InputError, match="table-mnist is not part of preset desktop, which has table-cifar-uniform, "):
        chosen("table-mnist", "desktop")


def test_logits_of_watched_samples_are_kept_epoch_by_epoch(tmp_path):
    (cell,) = EXPERIMENTS["figure-trajectories"].cells("smoke")
    Runner(Store(tmp_path), tmp_path).run([cell])
    arrays = Results.read(Store(tmp_path), "smoke", tmp_path).arrays(cell)
    epochs, num_samples, num_classes = arrays["logits"].shape
    assert (epochs, num_classes) == (1, 10)  # two epochs, of which the first is before the drop
    assert num_samples == len(arrays["aum"]) == len(arrays["is_flipped"])
    others = np.delete(arrays["logits"], 5, axis=2)  # all of them are labeled 5
    margins = arrays["logits"][:, :, 5] - others.max(2)
    assert margins.mean(0) == pytest.approx(arrays["aum"], abs=1e-4)
    (table,) = EXPERIMENTS["figure-trajectories"].tables(Results.read(Store(tmp_path), "smoke", tmp_path))
    taken = [f"{100 * (margins[-1][group] > 0).mean():.1f}" for group in (~arrays["is_flipped"], arrays["is_flipped"])]
    assert [row[-1] for row in table.rows] == taken


def test_removal_by_aum_takes_the_lowest_scores_and_at_random_as_many_others(tmp_path, monkeypatch):
    kept, on_part = [], Lesson.on_part
    monkeypatch.setattr(Lesson, "on_part", lambda lesson, rows: kept.append(rows) or on_part(lesson, rows))
    base = Cell("removal", "smoke", "mnist", "uniform", 0.4)
    place = Place(tmp_path / "own", tmp_path / "folds", tmp_path / "records")
    for ranking in ("aum", "random"):
        cell = base.varied(ranking=ranking, share=0.25)
        KINDS["removal"](cell, prepare(cell, tmp_path, tmp_path), replace(place, own=tmp_path / ranking))
    by_aum, at_random = (set(rows.tolist()) for rows in kept)
    assert len(by_aum) == len(at_random) == 180  # of 240
    assert by_aum != at_random
    runs = fold_runs(base, prepare(base, tmp_path, tmp_path), place)["aum"]
    judged = [np.where(run.is_threshold, np.nan, run.scores) for run in runs]
    scores = np.nanmean(judged, axis=0)
    removed = sorted(set(range(240)) - by_aum)
    assert scores[removed].max() <= scores[sorted(by_aum)].min()
