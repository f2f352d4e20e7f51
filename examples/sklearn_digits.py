"""scikit-learn: which digits are mislabeled? 90 of 1,797 labels are flipped on purpose.

pip install "undermargin[sklearn]"
python examples/sklearn_digits.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from undermargin import Scan
from undermargin.adapters.sklearn import MislabelDetector

rng = np.random.default_rng(0)
x, true = load_digits(return_X_y=True)
flipped = rng.choice(len(true), 90, replace=False)
labels = true.copy()
labels[flipped] = (true[flipped] + rng.integers(1, 10, 90)) % 10

# both folds of threshold samples are trained inside; X may also be sparse, a frame, or a list of texts
detector = MislabelDetector(make_pipeline(StandardScaler(), MLPClassifier(random_state=0)), epochs=20).fit(x, labels)
print(f"scores from the {detector.method_} of the training")

verdicts = detector.verdicts_
found = np.intersect1d(verdicts.flagged, flipped)
print(verdicts)
print(f"{len(found)} of the 90 flipped labels are among the {len(verdicts.flagged)} flagged")

scan = Scan.of(detector.runs_, out="scans/sklearn")
scan.report()
