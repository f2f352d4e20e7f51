"""What the paper's experiments run: settings by hand, grids, cells."""

from dataclasses import fields, replace

import pytest
from torch.nn import Linear
from torch.optim import SGD

from undermargin.paper import EXPERIMENTS, PRESETS
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import lesson, prepare
from undermargin.paper.published import ASYMMETRIC, REAL, REAL_DATA, UNIFORM
from undermargin.paper.shared import loss_budget
from undermargin.paper.study import STUDIES
from undermargin.procedure import Procedure
from undermargin.recipes import RECIPES
from undermargin.recipes.aum import Aum
from undermargin.recipes.data_parameters import JOINT
from undermargin.recipes.random_weighting import RandomWeighting, RandomWeightingByEpoch
from undermargin.training.network import _optimizer

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


def test_the_papers_threshold_samples_of_large_sets_are_an_average_class_of_theirs():
    size = Procedure.paper.num_threshold_samples
    assert (size(1_000_000, 14), size(100_000, 14), size(1_281_167, 1000)) == (66_666, 6_666, 1_279)


@pytest.mark.parametrize("data", STUDIES["paper"])
def test_at_the_papers_size_nothing_is_chosen_by_an_epoch_or_stopped(data):
    """The last epoch counts: no study holds samples out, and no budget has anything to stop by."""
    study = STUDIES["paper"][data]
    assert {field.name for field in fields(study.budget)} == {
        "epochs", "batch_size", "optimizer", "learning_rate", "momentum", "weight_decay", "drops",
    }  # fmt: skip
    assert study.num_test is None
    methods = {recipe: Cell("fit", "paper", data, recipe=recipe).method for recipe in (*UNIFORM["cifar10"], *REAL)}
    assert [name for name, method in methods.items() if hasattr(method, "held_out")] == ["l_dmi"]  # as its authors do


def test_the_paper_trains_by_momentum_as_nesterov_has_it():
    optimizer = _optimizer(Linear(2, 2), STUDIES["paper"]["cifar10"].budget)
    assert isinstance(optimizer, SGD)
    assert all(group["nesterov"] and group["momentum"] == 0.9 for group in optimizer.param_groups)


def test_the_losses_of_the_mixtures_are_of_a_training_as_long_as_a_fold_in_the_batches_of_all_others():
    budget = loss_budget(Cell("identification", "paper", "cifar10"))
    assert (budget.epochs, budget.batch_size, budget.drops) == (150, 256, ())


def test_removing_keeps_the_number_of_steps_by_smaller_batches(tmp_path):
    whole = lesson(SMOKE, prepare(SMOKE, tmp_path, tmp_path), tmp_path)
    part = whole.on_part(whole.rows[:180])  # three quarters of 240
    assert (whole.budget.batch_size, part.budget.batch_size) == (32, 24)
    steps = {}
    for one in (whole, part):
        training = one.plan.start(one.labels, 10, seed=0, budget=one.budget, rows=one.rows)
        shown = []
        training.run_epoch(0, lambda logits, labels, indices, shown=shown: shown.append(indices))
        steps[len(one.rows)] = len(shown)
    assert steps == {240: 8, 180: 8}
    paper = replace(whole, budget=STUDIES["paper"]["cifar10"].budget)
    assert paper.on_part(whole.rows[:180]).budget.batch_size == 192  # of 256


def test_recipes_have_their_authors_settings_for_a_data_set_where_these_name_any():
    assert Cell("fit", "paper", "cifar10", recipe="d2l").method.earliest == 40 / 120
    assert Cell("fit", "paper", "cifar100", recipe="d2l").method.earliest == 60 / 200
    assert Cell("fit", "paper", "cifar100", recipe="data_parameters").method.classes is None
    assert Cell("fit", "paper", "imagenet", recipe="data_parameters").method == JOINT
    assert Cell("fit", "laptop", "cifar10", recipe="d2l").method == RECIPES["d2l"].make()


def test_random_weights_are_drawn_by_epoch_as_the_papers_text_says_at_its_size():
    assert Cell("fit", "paper", "tiny-imagenet", recipe="random_weighting").method == RandomWeightingByEpoch()
    assert Cell("fit", "laptop", "cifar10", recipe="random_weighting").method == RandomWeighting()


def test_the_papers_ablations_are_on_its_data_sets():
    def varied(name, option):
        return {cell.option(option) for cell in EXPERIMENTS[name].cells("paper")} - {None}

    assert {cell.data for cell in EXPERIMENTS["figure-percentiles"].cells("paper")} == {"cifar100"}
    assert varied("figure-percentiles", "percentile") == {80, 90, 95, 97, 100}  # the 99th is the recipe itself
    assert {cell.data for cell in EXPERIMENTS["figure-removal"].cells("paper")} == {"cifar100"}
    assert varied("table-architectures", "model") == {"resnet32", "resnet56", "densenet40", "densenet100"}
    assert varied("table-batch-size", "fold_batch_size") == {256}
    assert varied("table-augmentation", "augmentation") == {"none"}


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
        for rate in (0.2, 0.3, 0.4):
            assert {("cifar10", "asymmetric", rate, recipe, seed) for seed in range(4)} <= asymmetric
    real = grid("table-real")
    for data in REAL_DATA:
        seeds = range(4 if data in SMALL else 1)
        assert {(data, "none", 0.0, recipe, seed) for recipe in REAL for seed in seeds} <= real


PAIRS = [(name, preset) for name, experiment in EXPERIMENTS.items() for preset in experiment.presets]


@pytest.mark.parametrize(("name", "preset"), PAIRS)
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
    expected = [("aum", "uniform")] if preset == "desktop" else [("aum", "uniform"), ("aum", "none")]
    assert [(cell.recipe, cell.noise) for cell in plain] == expected
    assert 99 not in {cell.option("percentile") for cell in cells}


def test_cells_share_folds_where_these_are_trained_alike():
    aum = Cell("fit", "smoke", "mnist", "uniform", 0.4)
    assert aum.folds_key == Cell("identification", "smoke", "mnist", "uniform", 0.4).folds_key
    assert aum.folds_key == aum.varied(percentile=90).folds_key
    assert aum.folds_key != aum.varied(fold_batch_size=8).folds_key
    assert aum.folds_key != aum.varied(is_whole=True).folds_key


@pytest.mark.parametrize("preset", ["paper", "laptop", "smoke"])
@pytest.mark.parametrize("name", ["table-batch-size", "table-stopping", "table-set-size"])
def test_what_an_ablation_leaves_unchanged_is_the_same_cell_everywhere(name, preset):
    unchanged = Cell("identification", preset, "cifar10", "uniform", 0.4)
    assert unchanged.key in {cell.key for cell in EXPERIMENTS[name].cells(preset)}
