"""What every recipe must do, tested over the table; and the mathematics of the small ones."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from undermargin import Procedure, Run, noise, recipes
from undermargin.cutoffs import by_percentile
from undermargin.errors import DivergedError, FolderError, InputError
from undermargin.models.group import Group
from undermargin.recipes import RECIPES, Budget, Known, Lesson
from undermargin.recipes.aum import Aum
from undermargin.recipes.bootstrap import hard_loss, soft_loss
from undermargin.recipes.co_teaching import CoTeaching, Exchange
from undermargin.recipes.lesson import NEEDS
from undermargin.recipes.random_weighting import RandomWeightingByEpoch, RectifiedNormal, RectifiedNormalOfEpoch
from undermargin.recipes.table import described
from undermargin.sources.digits import load_digits
from undermargin.sources.source import load
from undermargin.training.objective import Step, weighted
from undermargin.training.plan import plan

NUM_CLASSES = 3
BUDGET = Budget(epochs=4, batch_size=16, learning_rate=0.05)


def blobs(num_samples=90, seed=0):
    """Three clouds of points on a line in four dimensions, every fifth label wrong."""
    rng = np.random.default_rng(seed)
    true_labels = np.arange(num_samples) % NUM_CLASSES
    inputs = (rng.normal(size=(num_samples, 4)) + 4 * true_labels[:, None]).astype(np.float32)
    labels = noise.uniform(true_labels, 0.2, NUM_CLASSES, seed=seed)
    return inputs, labels, true_labels


def known(labels, true_labels):
    """Everything that any recipe may need."""
    return Known(
        noise_rate=0.2,
        pattern="uniform",
        is_clean=labels == true_labels,
        trusted=np.arange(0, len(labels), 3),
        true_labels=true_labels,
    )


def plain(num_outputs):
    """A network without batch statistics, which one sample has none of, and without dropout."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, num_outputs))


def fit(name, data=None, **changes):
    inputs, labels, true_labels = data or blobs()
    settings = {"budget": BUDGET, "known": known(labels, true_labels), "seed": 1} | changes
    return recipes.fit((inputs, labels), recipe=name, **settings)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_learns_the_blobs_in_spite_of_wrong_labels(name):
    _, labels, true_labels = blobs()
    fitted = fit(name, budget=replace(BUDGET, epochs=12))
    error = (fitted.predict(np.arange(len(labels))).argmax(1) != true_labels).mean()
    assert error < 0.15
    for values in fitted.scores.values():
        assert values.shape == labels.shape
    for values in (fitted.weights, fitted.soft_labels):
        assert values is None or (len(values) == len(labels) and np.nanmin(values) >= 0 and np.nanmax(values) <= 1)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_deterministic_under_a_seed_and_differs_under_another(name):
    rows = np.arange(90)
    first, second, other = (fit(name, seed=seed).predict(rows) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


class Killed(Exception):
    pass


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_goes_on_where_it_was_killed_and_ends_the_same(name, tmp_path):
    whole = fit(name, scores=("aum", "last_loss"))
    ended = 0

    def kill(stage, epoch, epochs):
        nonlocal ended
        ended += 1
        if ended % 3 == 0:
            raise Killed

    resumed = None
    while resumed is None:
        try:
            resumed = fit(name, scores=("aum", "last_loss"), folder=tmp_path, on_epoch=kill)
        except Killed:
            continue
    rows = np.arange(90)
    assert np.array_equal(whole.predict(rows), resumed.predict(rows))
    for score, values in whole.scores.items():
        assert np.array_equal(values, resumed.scores[score], equal_nan=True), score
    assert ended > 3


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_batches_of_one_in_which_most_classes_are_missing(name):
    fitted = fit(name, data=blobs(24), budget=Budget(epochs=2, batch_size=1, learning_rate=0.01), model=plain)
    assert np.isfinite(fitted.predict(np.arange(24))).all()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_trains_on_tiny_images(name):
    images, labels, true_labels = blobs(48)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (48, 8, 8, 3)) + 60 * true_labels[:, None, None, None]
    fitted = fit(name, data=(images.astype(np.uint8), labels, true_labels), budget=replace(BUDGET, epochs=2))
    assert np.isfinite(fitted.predict(np.arange(48))).all()


@pytest.mark.parametrize("name", [name for name, row in RECIPES.items() if row.needs])
def test_a_recipe_that_needs_to_know_something_says_so(name):
    with pytest.raises(InputError, match=rf"needs to know .*Known\({RECIPES[name].needs[0]}"):
        fit(name, known=None)


class Guarded(Known):
    """Remembers which of its fields were read."""

    read = ()

    def __getattribute__(self, field):
        if field in NEEDS:
            Guarded.read = (*Guarded.read, field)
        return super().__getattribute__(field)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_reads_nothing_that_it_does_not_say_it_needs(name):
    _, labels, true_labels = blobs()
    about = known(labels, true_labels)
    guarded = Guarded(**{field: getattr(about, field) for field in NEEDS})
    inputs, _, _ = blobs()
    chosen = plan(load((inputs, labels)))
    lesson = Lesson(chosen, labels, np.arange(90), NUM_CLASSES, replace(BUDGET, epochs=1), seed=0, known=guarded)
    Guarded.read = ()
    RECIPES[name].make().fit(lesson)
    assert set(Guarded.read) == set(RECIPES[name].needs)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_reads_digits_with_a_fifth_of_wrong_labels(name):
    digits = load_digits()
    true_labels = digits.train_labels
    labels = noise.uniform(true_labels, 0.2, 10, seed=0)
    about = known(labels, true_labels)
    fitted = recipes.fit(
        (digits.train_images, labels),
        recipe=name,
        test=(digits.test_images, digits.test_labels),
        known=about,
        budget=Budget(epochs=15, batch_size=32, learning_rate=0.05, drops=(0.5,)),  # DY-Bootstrap waits for a drop
    )
    assert fitted.test_error() < 0.2


def test_the_test_set_is_judged_by_its_own_labels():
    inputs, labels, _ = blobs()
    fitted = recipes.fit((inputs, labels), recipe="standard", budget=BUDGET, test=(inputs[:9], labels[:9]))
    expected = (fitted.predict(np.arange(9)).argmax(1) != labels[:9]).mean()
    assert fitted.test_rows.tolist() == list(range(90, 99))
    assert fitted.test_error() == expected


def test_a_divergence_is_detected_and_said():
    with pytest.raises(DivergedError, match=r"diverged in epoch \d of 4.*learning rate below 1e\+30"):
        fit("standard", budget=replace(BUDGET, learning_rate=1e30))


def test_a_folder_of_another_training_is_refused(tmp_path):
    fit("standard", folder=tmp_path)
    with pytest.raises(FolderError, match="different settings: recipe, seed;"):
        fit("bootstrap_hard", folder=tmp_path, seed=7)


def test_a_folder_of_a_training_that_was_told_something_else_is_refused(tmp_path):
    fit("co_teaching", folder=tmp_path, known=Known(noise_rate=0.2))
    with pytest.raises(FolderError, match="different settings: known;"):
        fit("co_teaching", folder=tmp_path, known=Known(noise_rate=0.4))


def test_methods_are_described_in_the_same_words_in_every_process():
    by_hand = Aum(cutoff=by_percentile(90))
    assert "0x" not in described(by_hand)
    assert described(by_hand) == described(Aum(cutoff=by_percentile(90)))
    assert described(by_hand) != described(Aum(cutoff=by_percentile(95)))


def test_a_shortened_lesson_is_the_beginning_of_the_whole_one():
    whole = Budget(epochs=100, batch_size=8, drops=(0.5, 0.75))
    lesson = Lesson(None, np.zeros(3, int), np.arange(3), 2, whole, seed=0)
    for epochs in (30, 60, 90):
        part = lesson.shortened(epochs).budget
        assert [part.rate(epoch) for epoch in range(epochs)] == [whole.rate(epoch) for epoch in range(epochs)]


def test_the_default_budget_does_not_depend_on_the_test_set():
    inputs, labels, _ = blobs()
    test = (np.tile(inputs, (50, 1)), np.tile(labels, 50))
    alone = recipes.fit((inputs, labels), recipe="standard")
    tested = recipes.fit((inputs, labels), recipe="standard", test=test)
    assert alone.training.budget == tested.training.budget


def test_there_is_no_test_error_without_a_test_set():
    with pytest.raises(InputError, match="no test set"):
        fit("standard").test_error()


def test_the_reference_procedure_judges_as_the_authors_code_does():
    """Strictly below the percentile: a sample that scores as the cutoff itself is kept."""
    scores, is_threshold = np.array([1.0, 2.0, 3.0, 2.0]), np.array([False, False, False, True])
    runs = [Run(scores, is_threshold)]
    assert Aum(procedure=Procedure.paper).verdicts(runs).is_flagged.tolist() == [True, True, False, False]
    assert Aum(procedure=Procedure.reference).verdicts(runs).is_flagged.tolist() == [True, False, False, False]


def test_a_recipe_that_does_not_exist_is_refused_with_the_names_of_those_that_do():
    with pytest.raises(InputError, match="unknown recipe 'best'; choose from standard, oracle"):
        fit("best")


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (Known(noise_rate=1.5), "noise rate is 1.5"),
        (Known(is_clean=np.ones(3, bool)), "is_clean has 3 entries, expected 90"),
    ],
)
def test_knowledge_that_cannot_be_true_is_refused(about, message):
    with pytest.raises(InputError, match=message):
        fit("standard", known=about)


# the mathematics of the small ones


def step(logits, labels, **changes):
    defaults = {
        "outputs": torch.tensor(logits, dtype=torch.float32),
        "labels": torch.tensor(labels),
        "indices": torch.arange(len(labels)),
        "epoch": 0,
        "share": 0.0,
        "generator": torch.Generator().manual_seed(0),
        "evaluated": lambda: torch.empty(0),
    }
    return Step(**defaults | changes)


def test_bootstrapping_mixes_the_label_with_the_prediction():
    """Two classes with probabilities 1/4 and 3/4, the label is the first: worked out by hand."""
    logits, labels = torch.log(torch.tensor([[0.25, 0.75]])), torch.tensor([0])
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    cross_entropy = -np.log(0.25)
    assert soft_loss(logits, labels, 0.9).item() == pytest.approx(0.9 * cross_entropy + 0.1 * entropy)
    assert soft_loss(logits, labels, 0.9, entropy_sign=-1).item() == pytest.approx(0.9 * cross_entropy - 0.1 * entropy)
    assert hard_loss(logits, labels, 0.8).item() == pytest.approx(0.8 * cross_entropy - 0.2 * np.log(0.75))


def test_bootstrapping_with_beta_one_is_cross_entropy():
    logits, labels = torch.randn(7, 5, generator=torch.Generator().manual_seed(0)), torch.arange(7) % 5
    expected = nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(soft_loss(logits, labels, 1.0), expected)
    torch.testing.assert_close(hard_loss(logits, labels, 1.0), expected)


def test_the_gradient_of_soft_bootstrapping_flows_through_the_prediction_twice():
    logits = torch.tensor([[0.3, -0.2, 0.1]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: soft_loss(z, torch.tensor([1]), 0.9), logits)


def test_random_weights_are_drawn_anew_at_every_step_and_half_of_them_are_zero():
    same = step([[1.0, 0.0]] * 2000, [0, 1] * 1000)
    losses = [RectifiedNormal().loss(same).item() for _ in range(2)]
    assert losses[0] != losses[1]
    expected = (np.log1p(np.exp(-1)) + np.log1p(np.exp(1))) / 2  # the weights know nothing of the samples
    assert losses == pytest.approx([expected] * 2, rel=0.1)


def test_random_weights_of_an_epoch_stay_with_their_samples_and_train():
    objective, generator = RectifiedNormalOfEpoch(), torch.Generator().manual_seed(0)
    shown = [step([[1.0, 0.0]] * 3, [0, 1, 0], indices=torch.tensor(indices)) for indices in ([4, 0, 2], [2, 4, 0])]
    seen = []
    for epoch in range(2):
        objective.begin_epoch(SimpleNamespace(labels=torch.zeros(5)), epoch, generator)
        weights = [objective.weights(one).tolist() for one in shown]
        assert weights[1] == [weights[0][2], weights[0][0], weights[0][1]]
        seen.append(weights[0])
    assert seen[0] != seen[1]
    inputs, labels, _ = blobs()
    fitted = recipes.fit((inputs, labels), recipe=RandomWeightingByEpoch(), model=plain, budget=BUDGET)
    assert fitted.predict(np.arange(90)).shape == (90, NUM_CLASSES)


def test_weights_that_are_all_zero_weigh_nothing():
    assert weighted(torch.tensor([1.0, 2.0]), torch.zeros(2)).item() == 0
    assert weighted(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])).item() == 1.25


def test_each_network_learns_from_what_the_other_one_finds_easy():
    """Two of four samples are kept: the first network finds 0 and 1 easy, the second 2 and 3."""
    easy, difficult = [4.0, 0.0], [0.0, 4.0]
    first, second = [easy, easy, difficult, difficult], [difficult, difficult, easy, easy]
    logits = np.stack([first, second], 1)
    objective = Exchange(4, 0.5, CoTeaching(gradual_epochs=1))
    loss = objective.loss(step(logits, [0, 0, 0, 0], epoch=5, share=0.9))
    assert loss.item() == pytest.approx(2 * np.log1p(np.exp(4)))  # each is taught what it finds difficult
    assert objective.share_chosen().tolist() == [0.5] * 4


def test_co_teaching_that_leaves_nobody_out_is_two_standard_networks():
    inputs, labels, _ = blobs()
    about = Known(noise_rate=0.0)
    alone = recipes.fit((inputs, labels), recipe="standard", model=plain, budget=BUDGET)
    pair = recipes.fit((inputs, labels), recipe="co_teaching", model=plain, budget=BUDGET, known=about)
    assert isinstance(pair.network, Group)
    for ours, theirs in zip(alone.network.parameters(), pair.network.members[0].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    first, second = (next(member.parameters()) for member in pair.network.members)
    assert not torch.allclose(first, second)


def test_the_oracle_trains_on_clean_samples_alone_for_as_many_iterations():
    _, labels, true_labels = blobs()
    fitted = fit("oracle")
    observed = ~np.isnan(fitted.scores["aum"])
    assert np.array_equal(observed, labels == true_labels)
    assert fitted.training.budget.batch_size == round(16 * observed.mean())


def test_aum_trains_again_without_what_it_flagged():
    fitted = fit("aum", budget=replace(BUDGET, epochs=12))
    observed = ~np.isnan(fitted.scores["aum"])
    assert fitted.verdicts is not None
    assert np.array_equal(fitted.weights, (~fitted.verdicts.is_flagged).astype(float))
    assert np.array_equal(fitted.training.rows.numpy(), np.flatnonzero(~fitted.verdicts.is_flagged))
    assert observed.all()
