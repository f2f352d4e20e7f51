import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from tests.adapters.plain import flipped_digits, mean_margins
from undermargin import Procedure, Tracker, folds, identify
from undermargin.adapters import boosting
from undermargin.adapters.sklearn import MislabelDetector
from undermargin.errors import InputError

ROUNDS = 6
XGBOOST = {"nthread": 1, "max_depth": 3}
LIGHTGBM = {"num_threads": 1, "verbosity": -1, "num_leaves": 7, "deterministic": True, "force_row_wise": True}
CATBOOST = {"thread_count": 1, "verbose": 0, "allow_writing_files": False, "depth": 3, "random_seed": 0}


def xgboost_native(x, labels, num_outputs):
    """A trained model, the data it predicts from, and its raw outputs after every round."""
    aim = (
        {"objective": "binary:logistic"}
        if num_outputs == 2
        else {"objective": "multi:softprob", "num_class": num_outputs}
    )
    data = xgboost.DMatrix(x, label=labels)
    model = xgboost.train(XGBOOST | aim, data, ROUNDS)
    return model, data, [model.predict(data, output_margin=True, iteration_range=(0, i + 1)) for i in range(ROUNDS)]


def xgboost_sklearn(x, labels, num_outputs):
    model = xgboost.XGBClassifier(n_estimators=ROUNDS, n_jobs=1, max_depth=3).fit(x, labels)
    return model, x, [model.predict(x, output_margin=True, iteration_range=(0, i + 1)) for i in range(ROUNDS)]


def lightgbm_native(x, labels, num_outputs):
    aim = {"objective": "binary"} if num_outputs == 2 else {"objective": "multiclass", "num_class": num_outputs}
    model = lightgbm.train(LIGHTGBM | aim, lightgbm.Dataset(x, labels), ROUNDS)
    return model, x, [model.predict(x, raw_score=True, num_iteration=i + 1) for i in range(ROUNDS)]


def lightgbm_sklearn(x, labels, num_outputs):
    model = lightgbm.LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbosity=-1, num_leaves=7).fit(x, labels)
    return model, x, [model.predict(x, raw_score=True, num_iteration=i + 1) for i in range(ROUNDS)]


def catboost_native(x, labels, num_outputs):
    aim = {"loss_function": "Logloss"} if num_outputs == 2 else {"loss_function": "MultiClass"}
    data = catboost.Pool(x, labels)
    model = catboost.CatBoost(CATBOOST | aim | {"iterations": ROUNDS}).fit(data)
    return model, data, [model.predict(data, prediction_type="RawFormulaVal", ntree_end=i + 1) for i in range(ROUNDS)]


def catboost_sklearn(x, labels, num_outputs):
    model = catboost.CatBoostClassifier(iterations=ROUNDS, **CATBOOST).fit(x, labels)
    return model, x, [model.predict(x, prediction_type="RawFormulaVal", ntree_end=i + 1) for i in range(ROUNDS)]


APIS = [xgboost_native, xgboost_sklearn, lightgbm_native, lightgbm_sklearn, catboost_native, catboost_sklearn]
every_api = pytest.mark.parametrize("train", APIS, ids=lambda train: train.__name__)


@every_api
def test_the_rounds_score_as_a_plain_loop_over_predictions_of_each_number_of_rounds(train):
    x, labels, _ = flipped_digits()
    fold = folds(labels, 10)[0]
    model, data, rounds = train(x, fold.labels, fold.num_outputs)
    run = boosting.run(model, data, fold)
    np.testing.assert_allclose(run.scores, mean_margins(rounds, fold.labels), rtol=1e-5, atol=1e-5)
    assert np.array_equal(run.is_threshold, fold.is_threshold)


@every_api
def test_a_binary_model_has_the_margins_of_its_one_output(train):
    x, labels, _ = flipped_digits()
    labels = labels % 2
    model, data, rounds = train(x, labels, 2)
    tracker = Tracker(len(labels))
    boosting.observe(tracker, model, data, labels)
    expected = np.mean(rounds, axis=0) * np.where(labels == 1, 1, -1)
    np.testing.assert_allclose(tracker.scores(), expected, rtol=1e-5, atol=1e-6)


@every_api
def test_observing_leaves_model_and_data_as_they_were(train):
    x, labels, _ = flipped_digits()
    fold = folds(labels, 10)[0]
    watched, data, before = train(x, fold.labels, fold.num_outputs)
    plain, *_ = train(x, fold.labels, fold.num_outputs)
    boosting.run(watched, data, fold)
    assert np.array_equal(watched.predict(data), plain.predict(data))
    if isinstance(data, xgboost.DMatrix):
        assert data.get_base_margin().size == 0
        assert np.array_equal(watched.predict(data, output_margin=True), before[-1])


@every_api
def test_the_first_rounds_alone_can_be_observed(train):
    x, labels, _ = flipped_digits()
    fold = folds(labels, 10)[0]
    model, data, rounds = train(x, fold.labels, fold.num_outputs)
    run = boosting.run(model, data, fold, rounds=2)
    np.testing.assert_allclose(run.scores, mean_margins(rounds[:2], fold.labels), rtol=1e-5, atol=1e-5)


@every_api
def test_ids_follow_their_samples_when_rows_are_shuffled(train, rng):
    x, labels, is_flipped = flipped_digits(900)
    order = rng.permutation(len(labels))
    x, labels, ids = x[order], labels[order], [f"digit{i}" for i in order]
    runs = []
    for fold in folds(labels, 10):
        model, data, _ = train(x, fold.labels, fold.num_outputs)
        runs.append(boosting.run(model, data, fold, ids=ids, class_names=list("0123456789")))
    verdicts = identify(runs)
    found = {verdicts.ids[i] for i in verdicts.order[:15]}
    assert len(found & {f"digit{i}" for i in np.flatnonzero(is_flipped)}) >= 8


def test_a_base_margin_of_the_users_own_counts_once():
    x, labels, _ = flipped_digits()
    base = np.random.default_rng(0).normal(size=(len(labels), 10)).astype(np.float32)
    data = xgboost.DMatrix(x, label=labels, base_margin=base)
    model = xgboost.train(XGBOOST | {"objective": "multi:softprob", "num_class": 10}, data, 3)
    tracker = Tracker(len(labels))
    boosting.observe(tracker, model, data, labels)
    rounds = [model.predict(data, output_margin=True, iteration_range=(0, i + 1)) for i in range(3)]
    np.testing.assert_allclose(tracker.scores(), mean_margins(rounds, labels), rtol=1e-5, atol=1e-5)
    assert np.array_equal(data.get_base_margin().reshape(base.shape), base)


def test_the_matrix_that_a_model_was_trained_on_may_be_quantized_and_is_given_back_when_observing_stops_early():
    x, labels, _ = flipped_digits()
    data = xgboost.QuantileDMatrix(x, label=labels)
    model = xgboost.train(XGBOOST | {"objective": "multi:softprob", "num_class": 10}, data, 4)
    before = model.predict(data)
    tracker = Tracker(len(labels))
    boosting.observe(tracker, model, data, labels, rounds=2)
    rounds = [model.predict(data, output_margin=True, iteration_range=(0, i + 1)) for i in range(2)]
    np.testing.assert_allclose(tracker.scores(), mean_margins(rounds, labels), rtol=1e-5, atol=1e-5)
    assert data.get_base_margin().size == 0
    assert np.array_equal(model.predict(data), before)


def test_frames_with_categories_are_read_as_they_were_trained_on():
    x, labels, _ = flipped_digits()
    frame = pd.DataFrame(x[:, :20], columns=[f"pixel{i}" for i in range(20)])
    frame["shade"] = pd.Categorical(np.where(x[:, 30] > 0.5, "dark", "light"))
    fold = folds(labels, 10)[0]
    for model in (
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1, enable_categorical=True),
        lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbosity=-1),
        catboost.CatBoostClassifier(iterations=2, cat_features=["shade"], **CATBOOST),
    ):
        model.fit(frame, fold.labels)
        assert np.isfinite(boosting.run(model, frame, fold).scores).all()


@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBClassifier(n_jobs=1, max_depth=3),
        lightgbm.LGBMClassifier(n_jobs=1, verbosity=-1, num_leaves=7),
        catboost.CatBoostClassifier(**CATBOOST),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_detector_trains_the_default_number_of_rounds_and_reads_them_like_the_adapter(estimator):
    x, labels, _ = flipped_digits()
    detector = MislabelDetector(estimator).fit(x, labels)
    library = type(estimator).__module__.split(".")[0]
    model = detector.estimators_[0]
    count = {
        "xgboost": lambda: model.get_booster().num_boosted_rounds(),
        "lightgbm": lambda: model.booster_.current_iteration(),
        "catboost": lambda: model.tree_count_,
    }[library]()
    assert detector.method_ == "stages"
    assert count == boosting.ROUNDS[library]
    fold = folds(labels, 10, procedure=Procedure.default)[0]
    np.testing.assert_allclose(detector.runs_[0].scores, boosting.run(model, x, fold).scores, rtol=1e-6)


def test_what_cannot_be_replayed_is_said():
    x, labels, _ = flipped_digits()
    aim = {"objective": "multi:softprob", "num_class": 10}
    data = xgboost.DMatrix(x, label=labels)
    dart = xgboost.train(XGBOOST | aim | {"booster": "dart"}, data, 2)
    trees = xgboost.train(XGBOOST | aim, data, 2)
    with pytest.raises(InputError, match="dart rescales earlier trees"):
        boosting.observe(Tracker(300), dart, data, labels)
    with pytest.raises(InputError, match="class numbers"):
        boosting.observe(Tracker(300), trees, data, labels.astype(str))
    with pytest.raises(InputError, match="299 labels for 300 rows"):
        boosting.observe(Tracker(300), trees, data, labels[1:])
    with pytest.raises(InputError, match="list is not a model of xgboost, lightgbm, catboost"):
        boosting.observe(Tracker(300), [], data, labels)
