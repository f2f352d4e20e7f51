import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undermargin import noise
from undermargin.errors import InputError

LABELS = np.repeat(np.arange(10), 1000)


def kinds(**settings):
    return {
        "uniform": lambda labels: noise.uniform(labels, 0.3, 10, **settings),
        "asymmetric": lambda labels: noise.asymmetric(labels, 0.3, 10, **settings),
        "pairs": lambda labels: noise.pairs(labels, 0.3, {3: 5, 5: 3}, 10, **settings),
        "transition": lambda labels: noise.transition(labels, np.eye(10) * 0.7 + 0.03, **settings),
    }


@pytest.mark.parametrize("kind", kinds(seed=0))
def test_noise_is_a_copy_and_comes_from_its_seed(kind):
    labels = LABELS.copy()
    first, again, other = (
        kinds(seed=0)[kind](labels),
        kinds(seed=0)[kind](labels),
        kinds(seed=1)[kind](labels),
    )
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def matrix(noisy):
    return np.array([np.bincount(noisy[label == LABELS], minlength=10) for label in range(10)]) / 1000


def test_uniform_noise_excludes_the_true_class_unless_asked():
    exact = matrix(noise.uniform(LABELS, 0.9, 10, seed=0, is_exact=True))
    np.testing.assert_allclose(np.diag(exact), 0.1)
    np.testing.assert_allclose(exact[~np.eye(10, dtype=bool)], 0.1)
    included = matrix(noise.uniform(LABELS, 0.5, 10, seed=0, include_true=True, is_exact=True))
    np.testing.assert_allclose(np.diag(included), 0.55)


def test_sampled_counts_scatter_around_the_rate_and_exact_ones_do_not():
    sampled = (noise.uniform(LABELS, 0.4, 10, seed=0) != LABELS).mean()
    exact = (noise.uniform(LABELS, 0.4, 10, seed=0, is_exact=True) != LABELS).mean()
    assert exact == 0.4
    assert sampled != 0.4
    assert abs(sampled - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 10_000)


def test_asymmetric_noise_goes_to_the_next_class_and_from_the_last_to_the_first():
    noisy = noise.asymmetric(LABELS, 0.2, 10, seed=0)
    flipped = noisy != LABELS
    np.testing.assert_array_equal(noisy[flipped], (LABELS[flipped] + 1) % 10)


def test_pairs_leave_other_classes_clean():
    noisy = noise.pairs(LABELS, 0.5, {3: 5}, 10, seed=0)
    assert set(np.unique(LABELS[noisy != LABELS])) == {3}
    assert set(np.unique(noisy[noisy != LABELS])) == {5}


@given(st.integers(0, 100), st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_exact_counts_lie_within_one_of_the_expected(seed, weights):
    row = np.array(weights) / sum(weights)
    noisy = noise.transition(np.zeros(97, dtype=int), np.array([row, [0, 1, 0], [0, 0, 1]]), seed=seed, is_exact=True)
    counts = np.bincount(noisy, minlength=3)
    assert counts.sum() == 97
    assert (np.abs(counts - row * 97) < 1).all()


@given(st.integers(1, 40), st.floats(0, 1), st.integers(2, 12), st.booleans())
def test_exact_noise_flips_the_nearest_whole_number_of_every_class(size, rate, num_classes, include_true):
    labels = np.repeat(np.arange(num_classes), size)
    noisy = noise.uniform(labels, rate, num_classes, seed=0, include_true=include_true, is_exact=True)
    expected = size * rate * ((num_classes - 1) / num_classes if include_true else 1)
    flips = np.bincount(labels[noisy != labels], minlength=num_classes)
    assert (np.abs(flips - expected) <= 0.5 + 1e-9).all()


def test_labels_from_a_file(tmp_path):
    np.savetxt(tmp_path / "human.txt", [1, 0, 1], fmt="%d")
    np.save(tmp_path / "human.npy", np.array([1, 0, 1]))
    for name in ("human.txt", "human.npy"):
        assert noise.from_file(tmp_path / name, [0, 0, 1], 2).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: noise.uniform([0, 1], 1.5, 2, seed=0), "rate is 1.5"),
        (lambda path: noise.asymmetric([0, 1], -0.1, 2, seed=0), "rate is -0.1"),
        (
            lambda path: noise.transition([0, 1], [[0.5, 0.4], [0, 1]], seed=0),
            "row 0 of the matrix does not sum to 1",
        ),
        (lambda path: noise.uniform([0, 0], 0.5, 1, seed=0), "num_classes is 1, expected at least 2"),
        (lambda path: noise.pairs([0, 1], 0.5, {0: 5}, 2, seed=0), "contains class 5"),
        (lambda path: noise.pairs([0, 1], 0.5, {0: -1}, 2, seed=0), "contains class -1"),
        (lambda path: noise.transition([0, 1], [[1, 0]], seed=0), "expected a square matrix"),
        (lambda path: noise.transition([0, 1], 1.0, seed=0), r"shape \(\), expected a square matrix"),
        (lambda path: noise.from_file(path / "missing.txt", [0], 2), "cannot be read as labels"),
        (lambda path: noise.from_file(path / "short.txt", [0, 0], 2), "1 labels for 2 samples"),
    ],
)
def test_bad_input_is_an_error(call, message, tmp_path):
    (tmp_path / "short.txt").write_text("1\n")
    with pytest.raises(InputError, match=message):
        call(tmp_path)
