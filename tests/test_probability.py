"""P(mislabeled): estimated from held-out predictions, checked on data whose truth we made."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from undermargin import Run, Tracker, Verdicts, identify, noise
from undermargin.cutoffs import CUTOFFS, find
from undermargin.cutoffs.noise_model import fit
from undermargin.errors import IdentifyError, InputError, ObservationError

NUM_CLASSES = 5


def predictions(true_labels, rng, *, sure=4.0, spread=1.0, num_classes=NUM_CLASSES):
    """Logits of a network that knows the true class, more or less."""
    logits = rng.normal(0, spread, (len(true_labels), num_classes))
    logits[np.arange(len(true_labels)), true_labels] += sure
    return logits


def made_runs(labels, true_labels, rng, *, pull=1.0, share=0.1, num_classes=NUM_CLASSES, **how):
    """Two runs with disjoint threshold samples; training pulls every other prediction towards its label."""
    runs = []
    part = rng.permutation(len(labels)) % round(1 / share)
    for fold in (0, 1):
        is_threshold = part == fold
        logits = predictions(true_labels, rng, num_classes=num_classes, **how)
        logits[np.arange(len(labels)), labels] += np.where(is_threshold, 0, pull)
        own = logits[np.arange(len(labels)), labels]
        others = np.where(np.eye(num_classes, dtype=bool)[labels], -np.inf, logits).max(1)
        runs.append(
            Run(
                scores=np.where(is_threshold, -9.0, own - others),
                is_threshold=is_threshold,
                labels=labels,
                fold=fold,
                probabilities=softmax(logits, axis=1).astype(np.float32),
            )
        )
    return runs


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def true_labels(rng):
    return rng.integers(0, NUM_CLASSES, 4000)


def noisy(true_labels, kind, rate):
    make = {"uniform": noise.uniform, "next": noise.asymmetric}[kind]
    return make(true_labels, rate, NUM_CLASSES, seed=0)


@pytest.mark.parametrize(("kind", "rate"), [("uniform", 0.05), ("uniform", 0.2), ("uniform", 0.4), ("next", 0.2)])
def test_the_noise_rate_is_estimated_from_held_out_predictions(true_labels, rng, kind, rate):
    labels = noisy(true_labels, kind, rate)
    model = fit(log_softmax(predictions(true_labels, rng), axis=1), labels)
    assert model.rate == pytest.approx((labels != true_labels).mean(), abs=0.03)
    assert model.interval[0] <= (labels != true_labels).mean() <= model.interval[1]
    assert model.can_tell


def test_the_transition_matrix_finds_which_class_is_taken_for_which(true_labels, rng):
    labels = noisy(true_labels, "next", 0.3)
    model = fit(log_softmax(predictions(true_labels, rng), axis=1), labels)
    following = (np.arange(NUM_CLASSES) + 1) % NUM_CLASSES
    np.testing.assert_allclose(model.transition[np.arange(NUM_CLASSES), following], 0.3, atol=0.06)
    np.testing.assert_allclose(model.transition.sum(1), 1)


def test_hardly_a_right_label_is_flagged_where_nothing_is_wrong(true_labels, rng):
    verdicts = identify(made_runs(true_labels, true_labels, rng, sure=3.0), "probability")
    assert verdicts.is_flagged.mean() < 0.03
    assert verdicts.summary()["estimated_noise_rate"] < 0.03


@pytest.mark.parametrize("num_classes", [2, 5])
def test_most_wrong_labels_are_found_whatever_the_number_of_classes(rng, num_classes):
    true_labels = rng.integers(0, num_classes, 4000)
    labels = noise.uniform(true_labels, 0.2, num_classes, seed=0)
    verdicts = identify(made_runs(labels, true_labels, rng, num_classes=num_classes), "probability")
    is_wrong = labels != true_labels
    assert verdicts.is_flagged[is_wrong].mean() > 0.9
    assert is_wrong[verdicts.is_flagged].mean() > 0.9


def test_the_probabilities_are_right_about_as_often_as_they_say(true_labels, rng):
    labels = noisy(true_labels, "uniform", 0.3)
    verdicts = identify(made_runs(labels, true_labels, rng, sure=2.5), "probability")
    is_wrong = labels != true_labels
    assert verdicts.probabilities.mean() == pytest.approx(is_wrong.mean(), abs=0.05)
    is_likely = verdicts.probabilities > 0.8
    assert is_wrong[is_likely].mean() > 0.75


def test_the_first_alternative_of_a_flagged_label_is_the_true_class(true_labels, rng):
    labels = noisy(true_labels, "uniform", 0.2)
    verdicts = identify(made_runs(labels, true_labels, rng), "probability")
    found = verdicts.is_flagged & (labels != true_labels)
    assert (verdicts.alternatives[found, 0] == true_labels[found]).mean() > 0.95
    assert (verdicts.suggested_labels[found] == verdicts.alternatives[found, 0]).all()
    assert verdicts.alternatives.shape == (4000, 3)
    assert (np.diff(verdicts.alternative_shares, axis=1) <= 0).all()


def test_one_run_judges_its_threshold_samples_too(true_labels, rng):
    labels = noisy(true_labels, "uniform", 0.2)
    first, _ = made_runs(labels, true_labels, rng)
    verdicts = identify(first, "probability")
    assert not len(verdicts.unjudged)
    is_wrong = labels != true_labels
    held_out = first.is_threshold
    assert verdicts.is_flagged[held_out & is_wrong].mean() > 0.8
    assert verdicts.is_flagged[held_out & ~is_wrong].mean() < 0.1


def test_a_model_that_knows_nothing_flags_nothing_and_says_so(true_labels, rng):
    labels = rng.permutation(true_labels)
    verdicts = identify(made_runs(labels, rng.permutation(true_labels), rng, pull=0.5), "probability")
    assert not verdicts.is_flagged.any()
    assert any("this model cannot tell" in note for note in verdicts.summary()["notes"])
    assert len(np.unique(verdicts.excess)) > 100  # the ranking is left


def test_a_rare_class_that_is_never_predicted_is_not_flagged_as_a_whole(rng):
    true_labels = np.where(np.arange(4000) < 20, 4, rng.integers(0, 4, 4000))
    runs = made_runs(true_labels, np.where(true_labels == 4, 0, true_labels), rng)
    verdicts = identify(runs, "probability")
    assert not verdicts.is_flagged[:20].any()
    assert any("too few samples to judge these classes" in note for note in verdicts.summary()["notes"])


def test_a_precision_and_a_budget_choose_how_many_are_flagged(true_labels, rng):
    labels = noisy(true_labels, "uniform", 0.3)
    runs = made_runs(labels, true_labels, rng, sure=3.0)
    is_wrong = labels != true_labels
    strict, loose = (identify(runs, "probability", precision=precision) for precision in (0.98, 0.6))
    assert 0 < strict.is_flagged.sum() < loose.is_flagged.sum()
    assert is_wrong[strict.is_flagged].mean() > 0.9
    assert strict.probabilities[strict.is_flagged].mean() >= 0.98
    assert loose.probabilities[loose.is_flagged].mean() == pytest.approx(0.6, abs=0.01)
    assert identify(runs, "probability", budget=50).is_flagged.sum() == 50
    with pytest.raises(IdentifyError, match="need the cutoff 'probability'"):
        identify(runs, "paper", budget=50)
    with pytest.raises(IdentifyError, match=r"precision is 1.5, expected a share"):
        identify(runs, "probability", precision=1.5)


def test_the_papers_rule_decides_alone_and_p_mislabeled_stands_beside_it(true_labels, rng):
    labels = noisy(true_labels, "uniform", 0.2)
    runs = made_runs(labels, true_labels, rng)
    bare = [Run(run.scores, run.is_threshold, labels=labels, fold=run.fold) for run in runs]
    both, alone = identify(runs, "paper"), identify(bare, "paper")
    np.testing.assert_array_equal(both.codes, alone.codes)
    np.testing.assert_array_equal(both.excess, alone.excess)
    assert alone.probabilities is None
    assert both.probabilities is not None


def test_verdicts_keep_probabilities_and_alternatives_in_both_formats(true_labels, rng, tmp_path):
    verdicts = identify(made_runs(noisy(true_labels, "uniform", 0.2), true_labels, rng), "probability")
    for name in ("verdicts.parquet", "verdicts.csv"):
        verdicts.save(tmp_path / name)
        again = Verdicts.load(tmp_path / name)
        np.testing.assert_allclose(again.probabilities, verdicts.probabilities)
        np.testing.assert_array_equal(again.alternatives, verdicts.alternatives)
        np.testing.assert_allclose(again.alternative_shares, verdicts.alternative_shares)


def test_what_the_rule_needs_and_a_run_lacks_is_named():
    scores, is_threshold = np.arange(4.0), np.array([True, False, False, False])
    with pytest.raises(IdentifyError, match=r"probabilities=num_classes"):
        identify(Run(scores, is_threshold, labels=[0, 1, 0, 1]), "probability")
    with pytest.raises(IdentifyError, match="no threshold samples"):
        identify(Run(scores, labels=[0, 1, 0, 1], probabilities=np.full((4, 2), 0.5)), "probability")
    with pytest.raises(IdentifyError, match="judges all runs together"):
        find(CUTOFFS["probability"], Run(scores, is_threshold))
    with pytest.raises(InputError, match=r"expected \(samples, classes\)"):
        Run(scores, probabilities=np.zeros(4))


def test_the_tracker_keeps_mean_probabilities_without_the_extra_output(rng):
    logits = rng.normal(size=(3, 6, 4))  # epochs, samples, outputs
    tracker = Tracker(6, probabilities=3)
    for epoch in logits:
        for rows in ([0, 1, 2, 3], [4], [4]):  # sample 4 is shown twice, sample 5 never
            tracker.update(epoch[rows], np.zeros(len(rows), int), rows)
        tracker.end_epoch()
    expected = softmax(logits[:, :5, :3], axis=2).mean(0)
    np.testing.assert_allclose(tracker.probabilities()[:5], expected, rtol=1e-5)
    assert np.isnan(tracker.probabilities()[5]).all()
    again = Tracker(6, probabilities=3)
    again.load_state_dict(tracker.state_dict())
    np.testing.assert_array_equal(again.probabilities(), tracker.probabilities())
    again.merge(tracker)
    np.testing.assert_allclose(again.probabilities()[:5], expected, rtol=1e-5)


def test_probabilities_that_were_not_tracked_or_have_no_epoch_are_an_error():
    with pytest.raises(InputError, match="probabilities were not tracked"):
        Tracker(3).probabilities()
    tracker = Tracker(3, probabilities=2)
    tracker.update([[1.0, 2.0, 0.0]], [0], [1])
    with pytest.raises(ObservationError, match="call end_epoch"):
        tracker.probabilities()
    with pytest.raises(InputError, match="must be the number of classes"):
        Tracker(3, probabilities=1)
