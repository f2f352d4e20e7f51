"""XGBoost: which digits are mislabeled? 90 of 1,797 labels are flipped on purpose.

pip install "undermargin[xgboost]"
python examples/xgboost_digits.py
"""

import numpy as np
import xgboost
from sklearn.datasets import load_digits

from undermargin import Procedure, Scan, folds, identify
from undermargin.adapters import boosting

rng = np.random.default_rng(0)
x, true = load_digits(return_X_y=True)
flipped = rng.choice(len(true), 90, replace=False)
labels = true.copy()
labels[flipped] = (true[flipped] + rng.integers(1, 10, 90)) % 10

runs = []
for fold in folds(labels, num_classes=10, seed=0, procedure=Procedure.default):
    data = xgboost.DMatrix(x, label=fold.labels)
    settings = {"objective": "multi:softprob", "num_class": fold.num_outputs, "nthread": 1}
    model = xgboost.train(settings, data, boosting.ROUNDS["xgboost"])
    runs.append(boosting.run(model, data, fold))  # an XGBClassifier and the array x work as well

verdicts = identify(runs, "auto")  # the cutoff of a scan; without a name, the one of the paper
found = np.intersect1d(verdicts.flagged, flipped)
print(verdicts)
print(f"{len(found)} of the 90 flipped labels are among the {len(verdicts.flagged)} flagged")

scan = Scan.of(runs, out="scans/xgboost")
scan.report()
