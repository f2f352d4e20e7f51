"""skorch: which digits are mislabeled? 90 of 1,797 labels are flipped on purpose.

pip install "undermargin[skorch]"
python examples/skorch_digits.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from skorch import NeuralNetClassifier
from torch import nn

from undermargin import Procedure, Scan, Tracker, folds, identify
from undermargin.adapters.skorch import INDEXED, TrackerCallback

rng = np.random.default_rng(0)
x, true = load_digits(return_X_y=True)
flipped = rng.choice(len(true), 90, replace=False)
labels = true.copy()
labels[flipped] = (true[flipped] + rng.integers(1, 10, 90)) % 10
x = (x / 16).astype("float32")

runs = []
for fold in folds(labels, num_classes=10, seed=0, procedure=Procedure.default):
    torch.manual_seed(fold.number)
    tracker = Tracker(len(labels), suggest=fold.num_classes)
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, fold.num_outputs)),
        criterion=nn.CrossEntropyLoss,
        callbacks=[TrackerCallback(tracker)],
        train_split=None,  # samples that skorch splits off for validation would stay unjudged
        max_epochs=15,
        lr=0.5,
        batch_size=64,
        iterator_train__shuffle=True,
        verbose=0,
        **INDEXED,
    )
    net.fit(x, fold.labels)
    runs.append(tracker.run(fold))

verdicts = identify(runs, "auto")  # the cutoff of a scan; without a name, the one of the paper
found = np.intersect1d(verdicts.flagged, flipped)
print(verdicts)
print(f"{len(found)} of the 90 flipped labels are among the {len(verdicts.flagged)} flagged")

scan = Scan.of(runs, out="scans/skorch")
scan.report()
