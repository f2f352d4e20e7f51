import numpy as np
from sklearn.mixture import GaussianMixture

from undermargin import recipes
from undermargin.recipes.fine import Fine, alignments, clean_probabilities


def test_features_are_compared_with_the_first_singular_vector_of_their_class(rng):
    features = rng.normal(size=(60, 5)) + 1
    labels = rng.integers(0, 3, 60)
    found = alignments(features, labels)
    for label in range(3):
        main = np.linalg.svd(features[labels == label])[2][0]
        for one, value in zip(features[labels == label], found[labels == label], strict=True):
            assert np.isclose(value, abs(main @ one) / np.linalg.norm(one))


def test_alignment_knows_neither_length_nor_sign():
    features = np.array([[1.0, 0], [5, 0], [-2, 0], [0, 0.5], [0, 0]])
    np.testing.assert_allclose(alignments(features, np.zeros(5, int)), [1, 1, 1, 0, 0], atol=1e-12)


def test_within_a_class_the_better_aligned_group_is_clean(rng):
    low, high = rng.normal(0.3, 0.05, 40), rng.normal(0.9, 0.02, 60)
    lines = np.concatenate([low, high, low / 2, high / 2])  # the second class's clean ones are where
    labels = np.repeat([0, 1], 100)  # the first one's mislabeled ones are
    is_clean = np.tile(np.repeat([False, True], [40, 60]), 2)
    probabilities = clean_probabilities(lines, labels)
    np.testing.assert_array_equal(probabilities > 0.5, is_clean)
    mixture = GaussianMixture(2, random_state=0).fit(lines[:100, None])
    by_hand = mixture.predict_proba(lines[:100, None])[:, mixture.means_.ravel().argmax()]
    np.testing.assert_allclose(probabilities[:100], by_hand, atol=0.05)


def test_a_class_of_one_or_of_equal_samples_is_clean():
    assert clean_probabilities(np.array([0.2, 0.7, 0.7, 0.7]), np.array([0, 1, 1, 1])).tolist() == [1, 1, 1, 1]


def test_it_finds_the_flipped_labels_of_blobs(noisy_blobs):
    x, y, is_mislabeled = noisy_blobs
    fitted = recipes.fit((x, y), recipe=Fine(), budget=recipes.Budget(epochs=9, batch_size=32, learning_rate=0.02))
    assert fitted.verdicts.is_flagged[is_mislabeled].mean() > 0.8
    assert fitted.verdicts.is_flagged[~is_mislabeled].mean() < 0.2
    assert ((fitted.scores["fine"] >= 0) & (fitted.scores["fine"] <= 1)).all()
    np.testing.assert_array_equal(fitted.weights == 0, fitted.verdicts.is_flagged)
