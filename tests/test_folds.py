import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undermargin import Procedure, folds, threshold_samples
from undermargin.errors import InputError
from undermargin.procedure import trainings

PROCEDURES = [Procedure.paper, Procedure.reference, Procedure.default]


@pytest.mark.parametrize(
    ("num_samples", "num_classes", "paper", "reference", "default"),
    [
        (45_000, 10, 4090, 4500, 4500),  # CIFAR-10, as the paper and its authors' code split it
        (45_000, 100, 445, 450, 4500),  # CIFAR-100
        (95_000, 200, 472, 475, 9500),  # Tiny ImageNet
        (900, 2, 300, 450, 90),  # two classes: the paper would take a third of the data
    ],
)
def test_sizes_of_the_threshold_sets(num_samples, num_classes, paper, reference, default):
    sizes = [procedure.num_threshold_samples(num_samples, num_classes) for procedure in PROCEDURES]
    assert sizes == [paper, reference, default]


def test_each_difference_between_paper_and_authors_code_is_a_named_field():
    assert Procedure.paper == Procedure(
        threshold_size="outputs", max_threshold_share=1.0, is_balanced=False, skip_epochs=0, percentile=99,
        is_strict=False, shares_seed=False, epochs=150,
    )  # fmt: skip
    assert Procedure.reference == Procedure(
        threshold_size="classes", max_threshold_share=1.0, is_balanced=False, skip_epochs=1, percentile=99,
        is_strict=True, shares_seed=True, epochs=150,
    )  # fmt: skip


@given(st.lists(st.integers(0, 3), min_size=10, max_size=80), st.integers(0, 5), st.sampled_from(PROCEDURES))
def test_threshold_samples_are_disjoint_wear_the_extra_label_and_nobody_else_changes(labels, seed, procedure):
    first, second = folds(labels, 4, seed=seed, procedure=procedure)
    assert not (first.is_threshold & second.is_threshold).any()
    size = procedure.num_threshold_samples(len(labels), 4)
    for fold in (first, second):
        assert fold.num_outputs == 5
        assert fold.is_threshold.sum() == size
        assert (fold.labels[fold.is_threshold] == 4).all()
        np.testing.assert_array_equal(fold.labels[~fold.is_threshold], np.array(labels)[~fold.is_threshold])
        np.testing.assert_array_equal(fold.assigned_labels, labels)


@given(st.integers(10, 200), st.integers(2, 9), st.integers(0, 3))
def test_the_mask_alone_is_that_of_the_papers_folds(num_samples, num_classes, seed):
    both = folds(np.arange(num_samples) % num_classes, num_classes, seed=seed)
    for number, fold in enumerate(both):
        mask = threshold_samples(num_samples, num_classes, number, seed=seed)
        np.testing.assert_array_equal(mask, fold.is_threshold)


def test_balanced_folds_take_the_same_share_of_every_class():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    for fold in folds(labels, 3, procedure=Procedure.default):
        assert np.bincount(labels[fold.is_threshold]).tolist() == [60, 30, 10]


def test_another_seed_gives_other_threshold_samples_and_the_same_seed_the_same():
    labels = np.zeros(1000, dtype=int)
    masks = [folds(labels, 2, seed=seed)[0].is_threshold for seed in (0, 0, 1)]
    assert np.array_equal(masks[0], masks[1])
    assert not np.array_equal(masks[0], masks[2])


def test_every_sample_is_judged_in_at_least_one_fold():
    first, second = folds(np.arange(30) % 3, 3)
    assert (~first.is_threshold | ~second.is_threshold).all()


def test_the_labels_given_are_not_changed():
    labels = np.zeros(50, dtype=np.int64)
    folds(labels, 2)
    assert not labels.any()


def test_folds_train_from_different_seeds_except_in_the_authors_code():
    for procedure, expected in ((Procedure.paper, [6, 7]), (Procedure.reference, [3, 3])):
        pairs = trainings([0, 1] * 20, 2, seed=3, procedure=procedure)
        assert [(fold.number, seed) for fold, seed in pairs] == list(enumerate(expected))


@pytest.mark.parametrize(
    ("labels", "num_classes", "message"),
    [
        ([0, 1, 2], 2, "labels range from 0 to 2, expected 0..1"),
        ([0, -1], 2, "labels range from -1 to 0"),
        ([0.5, 1.0], 2, "expected one integer per sample"),
        (["cat", "dog"], 2, "encode class names"),
        ([0, 0], 1, "num_classes is 1, expected at least 2"),
        ([0, 1], 5, "2 samples are too few"),
    ],
)
def test_labels_that_cannot_be_folded_are_errors(labels, num_classes, message):
    with pytest.raises(InputError, match=message):
        folds(labels, num_classes)


def test_there_are_two_folds():
    with pytest.raises(InputError, match=r"fold is 2, expected one of \[0, 1\]"):
        threshold_samples(100, 3, 2)


def test_every_preset_names_its_cutoff():
    presets = (Procedure.paper, Procedure.reference, Procedure.default)
    assert [preset.cutoff for preset in presets] == ["paper", "reference", "probability"]


@pytest.mark.parametrize("number", [1, 2, 3, 5, 10])
def test_any_number_of_folds_has_disjoint_threshold_samples(number):
    labels = np.arange(400) % 4
    made = folds(labels, 4, procedure=Procedure.default.with_folds(number))
    assert [fold.number for fold in made] == list(range(number))
    held_out = np.sum([fold.is_threshold for fold in made], axis=0)
    assert held_out.max() == 1
    assert held_out.mean() == pytest.approx({1: 0.1, 2: 0.2, 3: 0.6, 5: 1.0, 10: 1.0}[number])
    with pytest.raises(InputError, match="the number of folds is 0"):
        Procedure.default.with_folds(0)
