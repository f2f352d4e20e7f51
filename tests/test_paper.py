"""The paper's experiments: settings by hand, a runner that loses nothing, and a smoke test of everything."""

import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from undermargin.data.digits import load_digits
from undermargin.data.official.record import OfficialSet
from undermargin.data.pixels import Pixels
from undermargin.errors import InputError
from undermargin.models.images import Centre
from undermargin.paper import EXPERIMENTS, PRESETS, Results, Runner, Store, figures, reproduce, write
from undermargin.paper.cell import Cell
from undermargin.paper.kinds import KINDS, Place
from undermargin.paper.prepared import prepare
from undermargin.paper.published import ASYMMETRIC, REAL, REAL_DATA, UNIFORM
from undermargin.paper.runner import commit
from undermargin.paper.study import STUDIES
from undermargin.paper.tables import Table
from undermargin.recipes import RECIPES
from undermargin.recipes.aum import Aum
from undermargin.training.augmentation import ScaledCrops

SMALL = ("cifar10", "cifar100", "tiny-imagenet")
LARGE = ("webvision50", "clothing100k", "clothing1m", "imagenet")
SMOKE = Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard")


@pytest.mark.parametrize("data", SMALL)
def test_the_paper_trains_small_sets_as_its_appendix_says(data):
    study = STUDIES["paper"][data]
    assert study.model == "resnet32"
    assert study.num_train == (95_000 if data == "tiny-imagenet" else 45_000)
    assert study.num_test is None
    assert study.num_trials == 4
    assert study.augmentation == "crops"
    budget = study.budget
    assert (budget.epochs, budget.batch_size, budget.optimizer) == (300, 256, "sgd")
    assert (budget.learning_rate, budget.momentum, budget.weight_decay) == (0.1, 0.9, 1e-4)
    assert [budget.rate(epoch) for epoch in (0, 149, 150, 224, 225, 299)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    )
    fold = Aum(batch_size=study.fold_batch_size).budget(budget)
    assert (fold.epochs, fold.batch_size, fold.drops) == (150, 64, ())


@pytest.mark.parametrize(("data", "epochs", "drops"), [("webvision50", 180, (60, 120)), ("imagenet", 90, (30, 60))])
def test_the_paper_trains_large_sets_as_its_appendix_says(data, epochs, drops):
    study = STUDIES["paper"][data]
    assert (study.model, study.num_trials, study.num_train) == ("resnet50", 1, None)
    assert study.augmentation == "scaled crops"
    budget = study.budget
    assert (budget.epochs, budget.batch_size) == (epochs, 256)
    assert (budget.learning_rate, budget.momentum, budget.weight_decay) == (0.1, 0.9, 1e-4)
    first, second = drops
    assert [budget.rate(epoch) for epoch in (first - 1, first, second - 1, second)] == pytest.approx(
        [0.1, 0.01, 0.01, 0.001]
    )
    fold = Aum(batch_size=study.fold_batch_size).budget(budget)
    assert (fold.epochs, fold.batch_size, fold.drops) == (first, 256, ())


def test_pairs_of_large_sets_are_trained_alike():
    rows = STUDIES["paper"]
    assert rows["clothing100k"].budget == rows["webvision50"].budget
    assert rows["clothing1m"].budget == rows["imagenet"].budget


def test_the_papers_threshold_samples_and_percentile_are_its_texts():
    aum = Aum()
    assert aum.procedure.num_threshold_samples(45_000, 10) == 4090
    assert aum.procedure.num_threshold_samples(45_000, 100) == 445
    assert aum.procedure.num_threshold_samples(95_000, 200) == 472
    assert (aum.cutoff, aum.procedure.percentile, aum.procedure.skip_epochs) == (None, 99, 0)


def test_the_papers_grids_are_complete():
    def grid(name):
        return {(cell.data, cell.noise, cell.rate, cell.recipe, cell.seed) for cell in EXPERIMENTS[name].cells("paper")}

    uniform = grid("table-cifar-uniform")
    for data in ("cifar10", "cifar100"):
        for recipe in UNIFORM[data]:
            for rate in (0.2, 0.4, 0.6, 0.8):
                assert {(data, "uniform", rate, recipe, seed) for seed in range(4)} <= uniform
    asymmetric = grid("table-cifar-asymmetric")
    for recipe in ASYMMETRIC["cifar10"]:
        assert {("cifar10", "asymmetric", rate, recipe, 0) for rate in (0.2, 0.3, 0.4)} <= asymmetric
    real = grid("table-real")
    assert {(data, "none", 0.0, recipe, 0) for data in REAL_DATA for recipe in REAL} <= real


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_opens_with_claim_and_cost_and_names_known_recipes(name, preset):
    experiment = EXPERIMENTS[name]
    assert experiment.title
    assert experiment.claim or name == "table-mnist"  # which is not in the paper
    assert experiment.cost
    cells = experiment.cells(preset)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.recipe for cell in cells} <= set(RECIPES)


def test_a_cell_is_named_by_everything_its_result_depends_on():
    assert SMOKE.key == Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard").key
    others = [
        Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard", seed=1),
        Cell("fit", "smoke", "mnist", "uniform", 0.2, "standard"),
        Cell("fit", "laptop", "mnist", "uniform", 0.4, "standard"),
        SMOKE.varied(epochs=3),
        SMOKE.varied(augmentation="crops"),
    ]
    assert len({cell.key for cell in (SMOKE, *others)}) == 6
    assert SMOKE.varied(epochs=3).study.budget.epochs == 3


@pytest.mark.parametrize("preset", PRESETS)
def test_the_percentile_of_the_procedure_is_the_recipe_as_the_tables_have_it(preset):
    cells = EXPERIMENTS["figure-percentiles"].cells(preset)
    plain = [cell for cell in cells if not cell.vary]
    assert [(cell.recipe, cell.noise) for cell in plain] == [("aum", "uniform"), ("aum", "none")]
    assert 99 not in {cell.option("percentile") for cell in cells}


def test_cells_share_folds_where_these_are_trained_alike():
    aum = Cell("fit", "smoke", "mnist", "uniform", 0.4)
    assert aum.folds_key == Cell("identification", "smoke", "mnist", "uniform", 0.4).folds_key
    assert aum.folds_key == aum.varied(percentile=90).folds_key
    assert aum.folds_key != aum.varied(fold_batch_size=8).folds_key
    assert aum.folds_key != aum.varied(is_whole=True).folds_key


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["table-batch-size", "table-stopping", "table-set-size"])
def test_what_an_ablation_leaves_unchanged_is_the_same_cell_everywhere(name, preset):
    unchanged = Cell("identification", preset, "cifar10", "uniform", 0.4)
    assert unchanged.key in {cell.key for cell in EXPERIMENTS[name].cells(preset)}


def test_nothing_is_run_twice_and_results_carry_their_provenance(tmp_path):
    runner = Runner(Store(tmp_path), tmp_path)
    seen = []
    runner.run([SMOKE, SMOKE], lambda cell, numbers: seen.append(numbers))
    runner.run([SMOKE], lambda cell, numbers: seen.append(numbers))
    assert len(seen) == 1
    row = json.loads((tmp_path / "results.jsonl").read_text())
    assert row["numbers"]["test_error"] == seen[0]["test_error"]
    assert row["study"]["budget"]["epochs"] == 2
    assert {"key", "kind", "preset", "data", "noise", "rate", "recipe", "seed", "seconds", "commit"} <= set(row)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_result_names_the_commit_of_its_code_and_says_whether_that_was_changed(tmp_path, monkeypatch):
    code = tmp_path / "package" / "__init__.py"
    code.parent.mkdir()
    code.write_text("")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init"], ["add", "."], [*author, "commit", "-m", "first"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)
    monkeypatch.setattr("undermargin.__file__", str(code))
    clean = commit()
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (tmp_path / "results.jsonl").write_text("stored in the same checkout\n")
    assert commit() == clean
    code.write_text("changed = True\n")
    assert commit() == f"{clean}-dirty"


def test_how_long_a_cell_takes_is_told_from_those_like_it(tmp_path):
    store = Store(tmp_path)
    for seed, seconds in enumerate((10, 90, 20)):
        store.add(replace(SMOKE, seed=seed), {"test_error": 0.1}, {"seconds": seconds})
    results = Results.read(store, "smoke", tmp_path)
    assert results.seconds(replace(SMOKE, seed=5, rate=0.2)) == 20
    assert results.seconds(replace(SMOKE, recipe="aum")) is None


def test_a_divergence_is_a_result(tmp_path):
    runner = Runner(Store(tmp_path), tmp_path)
    cell = SMOKE.varied(learning_rate=1e30)
    runner.run([cell])
    assert "diverged in epoch 1" in Store(tmp_path).results()[cell.key]["numbers"]["diverged"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tables_and_figures_are_made_of_whatever_was_run_and_of_what_diverged(name, tmp_path):
    store = Store(tmp_path)
    cells = EXPERIMENTS[name].cells("smoke")
    write(name, Results.read(store, "smoke", tmp_path))
    for cell in cells:
        store.add(cell, {"diverged": "in epoch 1"}, {"seconds": 1.0, "commit": ""})
    write(name, Results.read(store, "smoke", tmp_path))


def test_one_cell_that_fails_does_not_keep_the_others_from_running(tmp_path):
    store = Store(tmp_path)
    absent = Cell("fit", "laptop", "mnist", "uniform", 0.4, "standard")
    with pytest.raises(InputError, match="mnist is not in"):
        Runner(store, tmp_path).run([absent, SMOKE])
    assert set(store.results()) == {SMOKE.key}


def test_a_data_set_that_is_smaller_than_the_preset_says_is_refused(tmp_path):
    with pytest.raises(InputError, match="digits has 1437 training samples here, this preset needs 5000"):
        Runner(Store(tmp_path), tmp_path).run([SMOKE.varied(num_train=5000)])
    with pytest.raises(InputError, match="digits has 10 classes here, this preset needs 200"):
        Runner(Store(tmp_path), tmp_path).run([SMOKE.varied(num_classes=200)])


def test_of_a_set_with_more_classes_than_the_preset_has_every_so_manieth_is_taken(tmp_path):
    cell = SMOKE.varied(num_classes=5, num_train=100, num_test=None)
    found = prepare(cell, tmp_path, tmp_path)
    digits = load_digits()
    assert found.class_names == ["0", "2", "4", "6", "8"]
    even = digits.test_labels[digits.test_labels % 2 == 0]
    assert (found.labels[found.test_rows] * 2).tolist() == even.tolist()
    images = digits.train_images[digits.train_labels % 2 == 0][found.indices]
    assert np.array_equal(found.images[:100], images)


def test_a_photo_that_cannot_be_read_is_left_out_with_its_label_and_said_so(tmp_path, monkeypatch):
    _sixty_photos(monkeypatch, unreadable=7)
    found = prepare(OF_SIXTY, tmp_path, tmp_path)
    left = [place for place in range(60) if place != 7]
    assert found.indices.tolist() == left
    assert (found.images[:, 0, 0, 0] == left + left).all()
    assert found.true_labels.tolist() == found.labels[found.test_rows].tolist() == [place % 10 for place in left]
    assert found.source["unreadable"] == "2 left out, first train/7.png: not an image"


def test_photos_that_do_not_fit_into_memory_are_decoded_once_for_all_cells(tmp_path, monkeypatch):
    monkeypatch.setattr("undermargin.data.samples.os.sysconf", lambda name: 0)
    train, test = _sixty_photos(monkeypatch, unreadable=7)
    first = prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    again = prepare(replace(OF_SIXTY, recipe="aum"), tmp_path, tmp_path / "photos")
    assert train.images.num_read == test.images.num_read == 60
    assert isinstance(again.images, Pixels)
    assert again.images[:].tolist() == first.images[:].tolist()
    assert (again.indices.tolist(), again.source) == (first.indices.tolist(), first.source)
    larger = prepare(OF_SIXTY.varied(image_size=16), tmp_path, tmp_path / "photos")
    assert larger.images.shape == (118, 16, 16, 3)


def test_photos_whose_decoding_was_killed_are_decoded_again(tmp_path, monkeypatch):
    monkeypatch.setattr("undermargin.data.samples.os.sysconf", lambda name: 0)
    _, test = _sixty_photos(monkeypatch)
    with monkeypatch.context() as killing:
        killing.setattr(test.images, "read", _killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    found = prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    assert found.images[:][:, 0, 0, 0].tolist() == [*range(60), *range(60)]


OF_SIXTY = SMOKE.varied(num_train=60, num_test=60, image_size=8)


def _sixty_photos(monkeypatch, unreadable=None):
    """A training and a test set of sixty photos, each as grey as its place says."""
    files = {f"{place}.png": b"no image" if place == unreadable else _png(place) for place in range(60)}
    train, test = (
        OfficialSet(
            _Files({f"{part}/{name}": data for name, data in files.items()}), np.arange(60) % 10, list("0123456789")
        )
        for part in ("train", "test")
    )
    monkeypatch.setattr("undermargin.paper.prepared.official_training_set", lambda study, root: train)
    monkeypatch.setattr("undermargin.paper.prepared._official_test_set", lambda study, root: test)
    return train, test


class _Files:
    def __init__(self, files):
        self.ids, self.contents, self.num_read = list(files), list(files.values()), 0

    def read(self, index):
        self.num_read += 1
        return self.contents[index]


def _killed(index):
    raise KeyboardInterrupt


def _png(grey):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (grey, grey, grey)).save(file, "png")
    return file.getvalue()


def test_a_figure_is_not_drawn_from_another_version_of_the_data(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    files = reproduce("figure-lowest", "smoke", Runner(Store(tmp_path), tmp_path))
    results = Results.read(Store(tmp_path), "smoke", tmp_path)
    assert EXPERIMENTS["figure-lowest"].figures(results).keys() == {path.stem for path in files}
    digits = load_digits()
    other = OfficialSet(digits.train_images[::-1], digits.train_labels[::-1], list("0123456789"))
    monkeypatch.setattr("undermargin.paper.prepared.official_training_set", lambda study, root: other)
    assert EXPERIMENTS["figure-lowest"].figures(results) == {}


def test_names_below_neighbouring_images_do_not_touch():
    pytest.importorskip("matplotlib")
    names = ["academic gown, academic robe, judge's robe", "Christmas stocking", "8"]
    figure = figures.grid([np.zeros((8, 8, 3), np.uint8)] * 3, names, "three", columns=3)
    figure.draw_without_rendering()
    first, second, third = (axis.texts[0].get_window_extent() for axis in figure.axes)
    assert first.x1 < second.x0
    assert second.x1 < third.x0
    assert figure.axes[2].texts[0].get_text() == "8"


def test_the_cost_of_two_folds_is_that_of_as_many_epochs_as_they_have(tmp_path, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("undermargin.paper.kinds.time.perf_counter", lambda: next(clock))  # every epoch takes a second
    cell = Cell("cost", "smoke", "mnist").varied(epochs=12, drops=(0.25,))
    numbers = KINDS["cost"](cell, prepare(cell, tmp_path, tmp_path), Place(tmp_path, tmp_path)).numbers
    assert numbers == {"seconds": {"training": 12, "folds": 2 * 3}}


def test_an_identifier_that_flags_nothing_has_no_precision_and_breaks_no_figure():
    pytest.importorskip("matplotlib")
    nothing, something = {"precision": None, "recall": 0.0}, {"precision": 0.5, "recall": 0.5}
    figure = figures.precision_recall({"bmm": [(0.2, [nothing]), (0.4, [something, nothing])]}, [0.2, 0.4], "two")
    assert figure.axes[0].lines[0].get_ydata().tolist() == pytest.approx([np.nan, 50], nan_ok=True)
    assert figure.axes[1].lines[0].get_ydata().tolist() == [0, 25]


def test_a_line_that_a_kill_cut_off_is_run_again_and_a_strange_one_is_an_error(tmp_path):
    store = Store(tmp_path)
    Runner(store, tmp_path).run([SMOKE])
    whole = store.path.read_text()
    store.path.write_text(whole + whole[:40])
    assert set(store.results()) == {SMOKE.key}
    other = SMOKE.varied(epochs=1)
    Runner(store, tmp_path).run([SMOKE, other])
    assert set(store.results()) == {SMOKE.key, other.key}
    store.path.write_text("{}\n" + whole)
    with pytest.raises(InputError, match=r"line 1 of .*results.jsonl is no result"):
        store.results()


def test_several_jobs_find_what_one_finds(tmp_path):
    cells = [SMOKE, Cell("fit", "smoke", "mnist", "uniform", 0.4), Cell("identification", "smoke", "mnist")]
    found = []
    for jobs in (1, 2):
        store = Store(tmp_path / str(jobs))
        Runner(store, tmp_path, num_jobs=jobs).run(cells)
        found.append({key: row["numbers"] for key, row in store.results().items()})
    assert json.dumps(found[0], sort_keys=True) == json.dumps(found[1], sort_keys=True)


@pytest.mark.slow
def test_a_ray_cluster_finds_what_one_process_finds(tmp_path):
    ray = pytest.importorskip("ray")
    cells = [SMOKE, Cell("identification", "smoke", "mnist")]
    stores = [Store(tmp_path / name) for name in ("here", "there")]
    Runner(stores[0], tmp_path).run(cells)
    try:
        Runner(stores[1], tmp_path, on_cluster=True).run(cells)
    finally:
        ray.shutdown()
    here, there = ({key: row["numbers"] for key, row in store.results().items()} for store in stores)
    assert json.dumps(here, sort_keys=True) == json.dumps(there, sort_keys=True)


def _files(folder):
    """What there is in a folder, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_killed_runner_loses_at_most_the_running_cell(tmp_path):
    """Killed as soon as it has written something, five times; the results are those of a runner left alone."""
    words = [sys.executable, "-m", "undermargin", "paper", "table-stopping", "--preset", "smoke", "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    killed, alone = Store(tmp_path / "killed"), Store(tmp_path / "alone")
    for _ in range(5):
        before = _files(killed.folder)
        process = subprocess.Popen([*words, str(killed.folder)], env=environment, stdout=subprocess.DEVNULL)
        while _files(killed.folder) == before and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(killed.results()) < 2  # or it was never killed at work
    for store in (killed, alone):
        subprocess.run([*words, str(store.folder)], check=True, env=environment, stdout=subprocess.DEVNULL)
    numbers = [{key: row["numbers"] for key, row in store.results().items()} for store in (killed, alone)]
    assert len(numbers[0]) == 2
    assert json.dumps(numbers[0], sort_keys=True) == json.dumps(numbers[1], sort_keys=True)


def test_the_whole_smoke_preset_runs_and_writes_every_table_and_figure(tmp_path):
    pytest.importorskip("matplotlib")
    runner = Runner(Store(tmp_path), tmp_path)
    written = {name: reproduce(name, "smoke", runner) for name in EXPERIMENTS}
    for name, files in written.items():
        assert files, name
        assert all(path.stat().st_size > 0 for path in files)
        if name.startswith("figure"):
            assert any(path.suffix == ".svg" for path in files)


def test_figures_and_tables_name_their_preset_and_are_made_again_without_running(tmp_path):
    pytest.importorskip("matplotlib")
    files = reproduce("figure-trajectories", "smoke", Runner(Store(tmp_path), tmp_path))
    before = {path: path.read_bytes() for path in files}
    assert {path.suffix for path in before} == {".md", ".tex", ".csv", ".svg", ".pdf"}
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
    with pytest.raises(InputError, match="mnist is not in .*get it from .* and put it at"):
        Runner(Store(tmp_path), Path(tmp_path)).run([cell])


def test_an_unknown_experiment_is_an_error_that_names_the_known_ones(tmp_path):
    with pytest.raises(InputError, match="no experiment 'table-of-contents'; choose from table-mnist"):
        reproduce("table-of-contents", "smoke", Runner(Store(tmp_path), tmp_path))


def test_a_photo_is_tested_on_its_middle_and_trained_on_random_parts():
    photo = torch.arange(36, dtype=torch.uint8).view(1, 6, 6, 1)
    assert Centre(2)(photo).flatten().tolist() == [14, 15, 20, 21]
    assert torch.equal(Centre(6)(photo), photo)
    whole = ScaledCrops(6, area=1.0, shape=1.0)
    seen = {tuple(whole((photo,), _drawn(seed))[0].flatten().tolist()) for seed in range(20)}
    assert seen == {tuple(photo.flatten().tolist()), tuple(photo.flip(2).flatten().tolist())}  # or mirrored
    photos = torch.randint(0, 256, (50, 32, 32, 3), dtype=torch.uint8, generator=_drawn(0))
    parts, labels = ScaledCrops(8)((photos, torch.arange(50)), _drawn(1))
    assert parts.shape == (50, 8, 8, 3)
    assert parts.dtype == torch.uint8
    assert torch.equal(parts, ScaledCrops(8)((photos, labels), _drawn(1))[0])
    assert not torch.equal(parts, ScaledCrops(8)((photos, labels), _drawn(2))[0])


def test_a_part_of_a_photo_covers_the_share_of_its_area_that_was_drawn():
    """A ramp from left to right: how far its values spread is how wide the part was."""
    ramp = torch.arange(0, 250, 1, dtype=torch.uint8)[None, None, :, None].expand(200, 250, 250, 1)
    parts = ScaledCrops(50, area=0.25, shape=1.0)((ramp,), _drawn(0))[0].float()
    widths = (parts.amax((1, 2, 3)) - parts.amin((1, 2, 3))) / 250 * 50 / 49
    assert 0.48 < widths.min() < 0.55  # the root of a quarter
    assert 0.95 < widths.max() <= 1.02


def _drawn(seed):
    return torch.Generator().manual_seed(seed)


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


def test_what_is_removed_at_random_is_as_much_as_by_aum(tmp_path):
    store = Store(tmp_path)
    base = Cell("removal", "smoke", "mnist", "uniform", 0.4)
    cells = [base.varied(ranking=ranking, share=0.5) for ranking in ("aum", "random")]
    Runner(store, tmp_path).run(cells)
    assert {"test_error"} == set.union(*(set(row["numbers"]) for row in store.results().values()))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_end_with_a_runner_that_is_killed(tmp_path):
    words = [
        sys.executable,
        "-m",
        "undermargin",
        "paper",
        "table-stopping",
        "--preset",
        "smoke",
        "--jobs",
        "2",
        "--out",
    ]
    process = subprocess.Popen([*words, str(tmp_path)], stdout=subprocess.DEVNULL)
    while not list(tmp_path.rglob("*.safetensors")):
        assert process.poll() is None
        time.sleep(0.01)
    workers = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 2
    started = time.monotonic()
    while any(Path(f"/proc/{worker}/stat").exists() and not _is_dead(worker) for worker in workers):
        assert time.monotonic() - started < 60
        time.sleep(0.1)


def _children(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _is_dead(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
