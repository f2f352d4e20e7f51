import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.adapters.plain import flipped_digits, mean_margins
from undermargin import Procedure, Tracker, folds, identify
from undermargin.adapters.sklearn import MislabelDetector, TrackerCallback
from undermargin.errors import InputError


@pytest.fixture(scope="module")
def digits():
    return flipped_digits()


@pytest.fixture(scope="module")
def more_digits():
    return flipped_digits(900)


def first_fold(labels):
    return folds(labels, 10, seed=0, procedure=Procedure.default)[0]


def check_scores(detector, epochs, fold):
    np.testing.assert_allclose(detector.runs_[0].scores, mean_margins(epochs, fold.labels), rtol=2e-6, atol=2e-5)


# what scikit-learn asks of every estimator; the slowest way to get margins has its own test
@parametrize_with_checks(
    [
        MislabelDetector(SGDClassifier(), epochs=2),
        MislabelDetector(HistGradientBoostingClassifier(), epochs=2),
        MislabelDetector(LogisticRegression(), epochs=3),
        MislabelDetector(DecisionTreeClassifier(max_depth=3), cv=2),
    ]
)
@pytest.mark.filterwarnings("ignore:The least populated class in y")
def test_the_detector_is_an_estimator_like_any_other(estimator, check):
    check(estimator)


def test_the_passes_of_an_mlp_score_as_in_a_plain_loop_and_train_the_same_network(digits):
    x, labels, _ = digits
    network = MLPClassifier((16,), batch_size=13, random_state=3)  # 300 samples: the last batch has one
    detector = MislabelDetector(network, epochs=4).fit(x, labels)
    fold, epochs = first_fold(labels), []
    plain = clone(network).set_params(random_state=np.random.RandomState(3))
    for _ in range(4):
        plain.partial_fit(x, fold.labels, classes=np.arange(11))
        epochs.append(np.log(plain.predict_proba(x).astype(float)))
    assert detector.method_ == "passes"
    check_scores(detector, epochs, fold)
    assert np.array_equal(detector.estimators_[0].predict_proba(x), plain.predict_proba(x))


@pytest.mark.parametrize(
    "estimator", [SGDClassifier(random_state=1), Perceptron(random_state=1)], ids=lambda e: type(e).__name__
)
def test_the_passes_of_a_linear_model_score_as_in_a_plain_loop_with_a_new_order_every_pass(estimator, digits):
    x, labels, _ = digits
    detector = MislabelDetector(estimator, epochs=3).fit(x, labels)
    fold, epochs = first_fold(labels), []
    plain = clone(estimator).set_params(random_state=np.random.RandomState(1))
    for _ in range(3):
        plain.partial_fit(x, fold.labels, classes=np.arange(11))
        epochs.append(plain.decision_function(x))
    check_scores(detector, epochs, fold)
    assert np.array_equal(detector.estimators_[0].coef_, plain.coef_)


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=4, random_state=0),
        GradientBoostingClassifier(n_estimators=4, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=4, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_stages_of_an_ensemble_score_as_in_a_plain_loop_and_grow_the_same_trees(estimator, digits):
    x, labels, _ = digits
    detector = MislabelDetector(estimator).fit(x, labels)
    fold = first_fold(labels)
    plain = clone(estimator).fit(x, fold.labels)
    assert detector.method_ == "stages"
    check_scores(detector, list(plain.staged_decision_function(x)), fold)
    assert np.array_equal(detector.estimators_[0].predict_proba(x), plain.predict_proba(x))


def test_no_more_stages_are_trained_than_are_observed(digits):
    x, labels, _ = digits
    detector = MislabelDetector(HistGradientBoostingClassifier(max_iter=50), epochs=3).fit(x, labels)
    assert detector.estimators_[0].n_iter_ == 3


def test_the_iterations_of_logistic_regression_score_as_in_a_plain_loop_and_end_with_the_same_weights(digits):
    x, labels, _ = digits
    detector = MislabelDetector(LogisticRegression(max_iter=8)).fit(x, labels)
    fold = first_fold(labels)
    with pytest.warns(match="failed to converge"):  # a training of k iterations is what iteration k saw
        plain = [LogisticRegression(max_iter=k).fit(x, fold.labels) for k in range(1, 9)]
    assert detector.method_ == "iterations"
    check_scores(detector, [model.decision_function(x) for model in plain], fold)
    assert np.array_equal(detector.estimators_[0].coef_, plain[-1].coef_)


def test_the_callback_feeds_a_tracker_of_the_users_own(digits):
    x, labels, _ = digits
    tracker = Tracker(len(labels))
    model = LogisticRegression(max_iter=500, tol=1e-2).set_callbacks(TrackerCallback(tracker, labels)).fit(x, labels)
    assert tracker.epoch == model.n_iter_[0]
    assert len(set(np.argsort(tracker.scores())[:15]) & set(range(15))) >= 12
    assert np.array_equal(model.coef_, LogisticRegression(max_iter=500, tol=1e-2).fit(x, labels).coef_)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (RandomForestClassifier(20, random_state=0), "predict_proba"),
        (KNeighborsClassifier(), "predict_proba"),
        (RidgeClassifier(), "decision_function"),
        (SVC(), "decision_function"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_any_classifier_is_judged_by_models_that_did_not_train_on_the_sample(estimator, method, digits):
    x, labels, is_flipped = digits
    detector = MislabelDetector(estimator, cv=3).fit(x, labels)
    fold, logits = first_fold(labels), np.zeros((len(labels), 11))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(x, fold.labels):
        outputs = getattr(clone(estimator).fit(x[train], fold.labels[train]), method)(x[test])
        logits[test] = np.log(outputs + 0.01) if method == "predict_proba" else outputs
    assert detector.method_ == "cross-validation"
    assert detector.verdicts_.summary()["score"] == "cross_validated_margin"
    assert detector.estimators_ == []
    check_scores(detector, [logits], fold)
    assert is_flipped[np.argsort(detector.scores_)[:15]].mean() > 0.8


def test_a_pipeline_is_watched_at_its_last_step(digits):
    x, labels, _ = digits
    detector = MislabelDetector(make_pipeline(StandardScaler(), MLPClassifier((8,), random_state=0)), epochs=2).fit(
        x, labels
    )
    scaled = MislabelDetector(MLPClassifier((8,), random_state=0), epochs=2).fit(
        StandardScaler().fit_transform(x), labels
    )
    assert detector.method_ == "passes"
    assert np.array_equal(detector.scores_, scaled.scores_)
    assert detector.estimators_[0].predict(x).shape == labels.shape


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(max_iter=50), RandomForestClassifier(30)], ids=lambda e: type(e).__name__
)
def test_texts_and_names_of_classes_go_through_a_pipeline(estimator):
    texts = ["good fine nice", "bad awful poor", "good nice great", "awful bad sad"] * 15
    names = ["pos", "neg", "pos", "neg"] * 15
    names[0] = "neg"
    detector = MislabelDetector(make_pipeline(CountVectorizer(), estimator)).fit(texts, names)
    assert detector.verdicts_.order[0] == 0
    assert detector.verdicts_.class_names == ["neg", "pos"]


def test_frames_keep_their_index_as_ids_also_when_they_are_shuffled(more_digits, rng):
    x, labels, is_flipped = more_digits
    order = rng.permutation(len(labels))
    frame = pd.DataFrame(x, index=[f"scan{i}.png" for i in range(len(labels))]).iloc[order]
    series = pd.Series(labels[order], index=frame.index)
    frame.columns = [f"pixel{i}" for i in range(x.shape[1])]
    detector = MislabelDetector(HistGradientBoostingClassifier()).fit(frame, series)
    found = {detector.verdicts_.ids[i] for i in detector.verdicts_.order[:15]}
    assert len(found & {f"scan{i}.png" for i in np.flatnonzero(is_flipped)}) >= 10
    assert list(detector.feature_names_in_[:2]) == ["pixel0", "pixel1"]


@pytest.mark.parametrize(
    "estimator",
    [MultinomialNB(), LogisticRegression(max_iter=20), MLPClassifier((8,), random_state=0)],
    ids=lambda e: type(e).__name__,
)
def test_sparse_matrices_give_the_scores_of_dense_ones(estimator, digits):
    x, labels, _ = digits
    x = x.astype(np.float64)
    dense = MislabelDetector(estimator, epochs=3).fit(x, labels)
    for kind in (sparse.csr_matrix, sparse.coo_array):
        np.testing.assert_allclose(
            MislabelDetector(estimator, epochs=3).fit(kind(x), labels).scores_, dense.scores_, rtol=1e-3, atol=1e-3
        )


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=30),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4, random_state=0)),
    ],
    ids=["iterations", "cross-validation"],
)
def test_sample_weights_reach_the_training(estimator, digits):
    x, labels, _ = digits
    plain, ones = (MislabelDetector(estimator).fit(x, labels, w).scores_ for w in (None, np.ones(len(labels))))
    weighted = MislabelDetector(estimator).fit(x, labels, np.where(labels == 3, 10.0, 0.1)).scores_
    np.testing.assert_allclose(plain, ones, rtol=1e-5, atol=1e-5)
    assert np.abs(weighted - plain).mean() > 0.1


def test_weights_that_an_estimator_does_not_take_are_an_error(digits):
    x, labels, _ = digits
    with pytest.raises(InputError, match="KNeighborsClassifier.fit takes no sample_weight"):
        MislabelDetector(KNeighborsClassifier()).fit(x, labels, np.ones(len(labels)))


def test_class_weights_are_known_by_the_names_of_the_classes(digits):
    x, labels, _ = digits
    names = np.array([f"digit {label}" for label in range(10)])[labels]
    by_name = LogisticRegression(max_iter=10, class_weight={"digit 3": 5.0})
    by_number = LogisticRegression(max_iter=10, class_weight={3: 5.0})
    assert np.array_equal(
        MislabelDetector(by_name).fit(x, names).scores_, MislabelDetector(by_number).fit(x, labels).scores_
    )


def test_a_class_whose_only_sample_became_a_threshold_sample_does_not_shift_the_others(digits):
    x, labels, _ = digits
    procedure = Procedure(max_threshold_share=0.1)  # threshold samples by chance alone: also the only one of a class
    lonely = np.flatnonzero(folds(labels, 10, procedure=procedure)[0].is_threshold)[0]
    labels = np.where(labels == 9, 10, labels)
    labels[lonely] = 9
    fold = folds(labels, 11, procedure=procedure)[0]
    assert 9 not in fold.labels
    estimator = HistGradientBoostingClassifier(max_iter=3, random_state=0)
    detector = MislabelDetector(estimator, procedure=procedure).fit(x, labels)
    present = [label for label in range(12) if label != 9]
    rounds = list(clone(estimator).fit(x, fold.labels).staged_decision_function(x))
    expected = mean_margins(rounds, [present.index(label) for label in fold.labels])
    np.testing.assert_allclose(detector.runs_[0].scores, expected, rtol=1e-6, atol=1e-6)


def test_the_verdicts_are_those_of_identify_on_the_runs_with_the_procedures_cutoff(digits):
    x, labels, is_flipped = digits
    detector = MislabelDetector(HistGradientBoostingClassifier()).fit(x, labels)
    assert np.array_equal(detector.verdicts_.codes, identify(detector.runs_, "auto").codes)
    assert is_flipped[detector.verdicts_.flagged].sum() >= 12
    assert detector.verdicts_.suggested_labels is not None
    paper = MislabelDetector(HistGradientBoostingClassifier(), procedure=Procedure.paper).fit(x, labels)
    assert np.array_equal(paper.verdicts_.codes, identify(paper.runs_).codes)
    assert paper.runs_[0].is_threshold.sum() == len(labels) // 11


def test_fit_predict_marks_flagged_samples_as_outlier_detectors_do(digits):
    x, labels, _ = digits
    detector = MislabelDetector(HistGradientBoostingClassifier(), epochs=5)
    marks = detector.fit_predict(x, labels)
    assert np.array_equal(marks == -1, detector.verdicts_.is_flagged)
    assert set(marks) == {-1, 1}


def test_the_users_estimator_is_never_fitted(digits):
    x, labels, _ = digits
    estimator = LogisticRegression(max_iter=5)
    MislabelDetector(estimator).fit(x, labels)
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (MislabelDetector(LogisticRegression(), method="stage"), "method is 'stage', expected auto, passes, stages"),
        (MislabelDetector(SVC(decision_function_shape="ovo")), "one output per pair of classes; expected 'ovr'"),
    ],
    ids=["method", "ovo"],
)
def test_what_cannot_be_watched_is_said(detector, message, digits):
    x, labels, _ = digits
    with pytest.raises(InputError, match=message):
        detector.fit(x, labels)
