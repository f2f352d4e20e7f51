"""After the fact: logits that another training stored for every epoch become runs, verdicts and a report.

pip install undermargin
python examples/import_logits.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from undermargin import Procedure, Scan, folds, identify, importers

rng = np.random.default_rng(0)
x, true = load_digits(return_X_y=True)
flipped = rng.choice(len(true), 90, replace=False)
labels = true.copy()
labels[flipped] = (true[flipped] + rng.integers(1, 10, 90)) % 10

# somebody's training, which knows nothing of undermargin and stores (epochs, samples, classes)
for fold in folds(labels, num_classes=10, seed=0, procedure=Procedure.default):
    network, epochs = MLPClassifier(random_state=0), []
    for _ in range(15):
        network.partial_fit(x / 16, fold.labels, classes=np.arange(fold.num_outputs))
        epochs.append(network.predict_proba(x / 16))
    np.savez(f"fold{fold.number}.npz", probabilities=np.array(epochs, np.float32))

runs = []
for fold in folds(labels, num_classes=10, seed=0, procedure=Procedure.default):
    runs += importers.read(f"fold{fold.number}.npz", fold=fold)

verdicts = identify(runs, "auto")  # the cutoff of a scan; without a name, the one of the paper
found = np.intersect1d(verdicts.flagged, flipped)
print(verdicts)
print(f"{len(found)} of the 90 flipped labels are among the {len(verdicts.flagged)} flagged")

scan = Scan.of(runs, out="scans/imported")
scan.report()
