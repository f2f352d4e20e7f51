"""Keras 3: which digits are mislabeled? 90 of 1,797 labels are flipped on purpose.

pip install "undermargin[keras]"
python examples/keras_digits.py
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported

import keras
import numpy as np
from sklearn.datasets import load_digits

from undermargin import Procedure, Scan, Tracker, folds, identify
from undermargin.adapters.keras import indexed, watch

rng = np.random.default_rng(0)
x, true = load_digits(return_X_y=True)
flipped = rng.choice(len(true), 90, replace=False)
labels = true.copy()
labels[flipped] = (true[flipped] + rng.integers(1, 10, 90)) % 10
x = (x / 16).astype("float32")

runs = []
for fold in folds(labels, num_classes=10, seed=0, procedure=Procedure.default):
    keras.utils.set_random_seed(fold.number)
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(fold.num_outputs)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
    tracker = Tracker(len(labels), suggest=fold.num_classes)
    model.fit(x, indexed(fold.labels), batch_size=64, epochs=15, verbose=0, callbacks=[watch(model, tracker)])
    runs.append(tracker.run(fold))

verdicts = identify(runs, "auto")  # the cutoff of a scan; without a name, the one of the paper
found = np.intersect1d(verdicts.flagged, flipped)
print(verdicts)
print(f"{len(found)} of the 90 flipped labels are among the {len(verdicts.flagged)} flagged")

scan = Scan.of(runs, out="scans/keras")
scan.report()
