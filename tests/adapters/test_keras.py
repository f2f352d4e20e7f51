import keras
import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

from tests.adapters.plain import NUM_FLIPPED, flipped_digits, margin, mean_margins
from undermargin import Tracker, folds, identify
from undermargin.adapters.keras import indexed, watch
from undermargin.errors import InputError

BATCH, EPOCHS = 13, 3  # 300 samples: the last batch has one
needs_torch = pytest.mark.skipif(keras.backend.backend() != "torch", reason="a data loader of torch")


@pytest.fixture(scope="module")
def digits():
    return flipped_digits()


def make(num_outputs=11, *, is_logits=True, learning_rate=0.01, loss=None, **settings):
    keras.utils.set_random_seed(0)
    last = keras.layers.Dense(num_outputs, activation=None if is_logits else "softmax")
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(16, activation="relu"), last])
    loss = loss or keras.losses.SparseCategoricalCrossentropy(from_logits=is_logits)
    model.compile(keras.optimizers.SGD(learning_rate), loss, metrics=["accuracy"], **settings)
    return model


def outputs_of(model, x):
    return keras.ops.convert_to_numpy(model(x, training=True))


@pytest.mark.parametrize("is_logits", [True, False], ids=["logits", "probabilities"])
def test_scores_equal_a_plain_loop_over_the_same_batches(is_logits, digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make(is_logits=is_logits)
    model.fit(
        x, indexed(labels), batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[watch(model, tracker)]
    )
    plain, margins = make(is_logits=is_logits), np.zeros((EPOCHS, 300))
    for epoch in range(EPOCHS):
        for start in range(0, 300, BATCH):
            batch = slice(start, min(start + BATCH, 300))
            outputs = outputs_of(plain, x[batch])
            logits = outputs if is_logits else np.log(outputs)
            margins[epoch, batch] = [margin(*pair) for pair in zip(logits, labels[batch], strict=True)]
            plain.train_on_batch(x[batch], labels[batch])
    np.testing.assert_allclose(tracker.scores(), margins.mean(0), rtol=1e-4, atol=1e-5)
    assert tracker.epoch == EPOCHS


@pytest.mark.parametrize("batch_size", [1, 7, 300])
def test_ids_are_right_when_keras_shuffles(batch_size, digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make(learning_rate=0.0)  # nothing is learned: margins depend on the sample alone
    model.fit(x, indexed(labels), batch_size=batch_size, epochs=2, verbose=0, callbacks=[watch(model, tracker)])
    expected = mean_margins([outputs_of(make(), x)], labels)
    np.testing.assert_allclose(tracker.scores(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"validation_split": 0.2}, {"weighted": True}], ids=["plain", "split", "weights"]
)
def test_losses_and_weights_are_bit_equal_with_and_without_the_callback(settings, digits):
    x, labels, _ = digits
    options = {"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0}
    options |= {"sample_weight": np.linspace(0, 1, 300)} if "weighted" in settings else settings
    plain = make()
    before = plain.fit(x, labels, **options).history
    model, tracker = make(), Tracker(300)  # sets the seed of the shuffling again
    after = model.fit(x, indexed(labels), callbacks=[watch(model, tracker)], **options).history
    assert after == before
    for one, other in zip(model.get_weights(), plain.get_weights(), strict=True):
        assert np.array_equal(one, other)
    is_held_out = np.arange(300) >= (240 if "validation_split" in settings else 300)
    assert np.array_equal(np.isnan(tracker.scores()), is_held_out)


def test_validation_data_is_not_observed_and_needs_no_index(digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make()
    rest = (x[200:], labels[200:])
    model.fit(x[:200], indexed(labels[:200]), validation_data=rest, verbose=0, callbacks=[watch(model, tracker)])
    assert np.isnan(tracker.scores()[200:]).all()
    assert not np.isnan(tracker.scores()[:200]).any()


def test_labels_may_be_one_hot(digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make(learning_rate=0.0, loss=keras.losses.CategoricalCrossentropy(from_logits=True))
    one_hot = np.eye(11, dtype=np.float32)[labels]
    model.fit(x, indexed(one_hot), verbose=0, callbacks=[watch(model, tracker)])
    np.testing.assert_allclose(tracker.scores(), mean_margins([outputs_of(make(), x)], labels), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_logits", [True, False], ids=["logits", "probabilities"])
def test_one_output_of_a_binary_model_becomes_two(is_logits, digits):
    x, labels, _ = digits
    labels = (labels % 2).astype(np.float32)

    def binary():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Dense(1, activation=None if is_logits else "sigmoid")])
        model.compile(keras.optimizers.SGD(0.0), keras.losses.BinaryCrossentropy(from_logits=is_logits))
        return model

    tracker, model = Tracker(300), binary()
    model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, tracker)])
    raw = outputs_of(model, x)[:, 0].astype(float)
    logits = raw if is_logits else np.log(raw / (1 - raw))
    np.testing.assert_allclose(tracker.scores(), np.where(labels == 1, logits, -logits), rtol=1e-4, atol=1e-5)


class Batches(keras.utils.PyDataset):
    """Every second sample, backwards: batches that say themselves which samples they hold."""

    def __init__(self, x, labels, order, **settings):
        super().__init__(**settings)
        self.x, self.labels, self.order = x, labels, order

    def __len__(self):
        return -(-len(self.order) // BATCH)

    def __getitem__(self, number):
        rows = self.order[number * BATCH : (number + 1) * BATCH]
        return self.x[rows], indexed(self.labels[rows], rows)


def test_a_data_set_of_the_users_own_yields_the_indices_with_its_batches(digits):
    x, labels, _ = digits
    order = np.arange(299, -1, -2)
    tracker, model = Tracker(300), make(learning_rate=0.0)
    model.fit(Batches(x, labels, order), epochs=2, verbose=0, callbacks=[watch(model, tracker)])
    expected = mean_margins([outputs_of(make(), x)], labels)
    np.testing.assert_allclose(tracker.scores()[order], expected[order], rtol=1e-4, atol=1e-5)
    assert np.isnan(np.delete(tracker.scores(), order)).all()


class Pairs(Dataset):
    def __init__(self, x, labels):
        self.x, self.labels = x, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.x[index], {name: values[0] for name, values in indexed([self.labels[index]], [index]).items()}


@needs_torch
def test_a_loader_of_torch_yields_the_indices_too(digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make(learning_rate=0.0)
    loader = DataLoader(Pairs(x, labels), BATCH, shuffle=True)
    model.fit(loader, shuffle=False, verbose=0, callbacks=[watch(model, tracker)])
    np.testing.assert_allclose(tracker.scores(), mean_margins([outputs_of(make(), x)], labels), rtol=1e-4, atol=1e-5)


def test_after_training_the_model_is_what_it_was(digits):
    x, labels, _ = digits
    tracker, model = Tracker(300), make()
    model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, tracker)])
    assert model.compute_loss.__func__ is type(model).compute_loss
    model.fit(x, labels, verbose=0)
    model.evaluate(x, labels, verbose=0)
    assert tracker.epoch == 1


def test_a_training_that_was_interrupted_does_not_feed_its_tracker_any_more(digits):
    x, labels, _ = digits

    class Interrupt(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyboardInterrupt

    first, second, model = Tracker(300), Tracker(300), make()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, indexed(labels), epochs=2, verbose=0, callbacks=[watch(model, first), Interrupt()])
    before = first.scores().copy()
    model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, second)])
    assert np.array_equal(first.scores(), before)
    assert second.epoch == 1


def test_a_loss_of_the_users_own_must_be_told_about(digits):
    x, labels, _ = digits

    def loss(y_true, y_pred):
        return keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)

    model = make(loss=loss)
    with pytest.raises(InputError, match="pass from_logits=True or False to watch"):
        model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, Tracker(300))])
    model, tracker = make(loss=loss), Tracker(300)
    model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, tracker, from_logits=True)])
    assert not np.isnan(tracker.scores()).any()


def test_a_model_with_several_outputs_is_an_error(digits):
    x, labels, _ = digits
    inputs = keras.Input((64,))
    model = keras.Model(inputs, [keras.layers.Dense(11)(inputs), keras.layers.Dense(11)(inputs)])
    model.compile("sgd", lambda y_true, y_pred: keras.ops.mean(y_pred))
    with pytest.raises(InputError, match="the model has 2 outputs; expected one"):
        model.fit(x, indexed(labels), verbose=0, callbacks=[watch(model, Tracker(300))])


def test_indices_must_match_their_labels():
    with pytest.raises(InputError, match="2 indices for 3 labels"):
        indexed([0, 1, 1], [4, 5])


def test_two_folds_find_the_flipped_labels(digits):
    x, labels, is_flipped = digits
    runs = []
    for fold in folds(labels, 10):
        model, tracker = make(fold.num_outputs, learning_rate=0.5), Tracker(300)
        model.fit(x, indexed(fold.labels), batch_size=32, epochs=15, verbose=0, callbacks=[watch(model, tracker)])
        runs.append(tracker.run(fold))
    verdicts = identify(runs)
    assert is_flipped[verdicts.order[:NUM_FLIPPED]].mean() > 0.7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of Keras and of itself
def test_a_compiled_training_step_is_observed(digits):
    x, labels, _ = digits
    scores = []
    for jit in (False, True):
        model, tracker = make(jit_compile=jit), Tracker(300)
        model.fit(x, indexed(labels), batch_size=BATCH, epochs=2, verbose=0, callbacks=[watch(model, tracker)])
        scores.append(tracker.scores())
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-4)
