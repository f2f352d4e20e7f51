"""How many boosting rounds to watch: average precision by rounds, on letter and segment, at each library's defaults.

UNDERMARGIN_DATA=path python -m bench.rounds      # one line per cell in bench/rounds.jsonl
"""

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, matthews_corrcoef

from bench.__main__ import commit
from bench.estimators import ESTIMATORS, flip, load
from undermargin import Procedure, Run, Tracker, folds, identify
from undermargin.adapters import boosting

RESULTS = Path(__file__).parent / "rounds.jsonl"
ROUNDS = (5, 10, 15, 20, 30, 45, 60)
NUMBER = {"hist": "max_iter", "xgboost": "n_estimators", "lightgbm": "n_estimators", "catboost": "iterations"}


def main() -> None:
    """Run the cells that are missing."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    stored = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []
    done = {(row["data"], row["noise"], row["estimator"], row["seed"]) for row in stored}
    for cell in product(("segment", "letter"), ("uniform-20", "uniform-40", "next-40"), NUMBER, (0,)):
        if cell not in done:
            row = measure(*cell)
            print(*cell, row["average_precision"], flush=True)
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")


def measure(data: str, noise: str, name: str, seed: int) -> dict[str, Any]:
    """Average precision and Matthews correlation after each number of rounds, both folds."""
    code = commit()
    x, true = load(data, seed)
    labels = flip(true, noise, seed)
    runs: dict[int, list[Run]] = {rounds: [] for rounds in ROUNDS}
    for fold in folds(labels, int(true.max()) + 1, seed=seed, procedure=Procedure.default):
        model = ESTIMATORS[name][0](random_state=seed, **{NUMBER[name]: max(ROUNDS)}).fit(x, fold.labels)
        for rounds in ROUNDS:
            tracker = Tracker(len(labels))
            boosting.observe(tracker, model, x, fold.labels, rounds=rounds)
            runs[rounds].append(tracker.run(fold))
    verdicts = {rounds: identify(found, "auto") for rounds, found in runs.items()}
    is_flipped = labels != true
    precision = {k: round(average_precision_score(is_flipped, -one.excess), 4) for k, one in verdicts.items()}
    mcc = {k: round(float(matthews_corrcoef(is_flipped, one.is_flagged)), 4) for k, one in verdicts.items()}
    row = {"data": data, "noise": noise, "estimator": name, "seed": seed, "num_samples": int(np.size(labels))}
    return row | {"average_precision": precision, "mcc": mcc, "commit": code}


if __name__ == "__main__":
    main()
