"""Found labels on five tables: scikit-learn and boosting estimators, beside 5-fold cleanlab on the same estimator.

Ours is `MislabelDetector(estimator)` with its defaults. Cleanlab gets out-of-fold probabilities of the estimator as its
library makes it ("cleanlab") and, where ours trains for fewer passes or rounds, also of that length ("cleanlab_short").
Every cell is one line of bench/estimators.jsonl; cells that are there are not run again. Seconds are those of the
processor, on one thread, so that a busy machine does not count (lines without "clock" are older: seconds of the wall
clock on a busy machine, which the table leaves out).

    UNDERMARGIN_DATA=path python -m bench.estimators [--seeds 0 1 2] [--data letter ...] [--estimators xgboost ...]
    python -m bench.estimators --table     # what is stored, as a Markdown table
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import average_precision_score, matthews_corrcoef
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.__main__ import commit
from undermargin import identify
from undermargin.adapters.sklearn import MislabelDetector

DATA = Path(os.environ.get("UNDERMARGIN_DATA", "data")) / "tabular"
RESULTS = Path(__file__).parent / "estimators.jsonl"
TABLES = {"vehicle": None, "segment": None, "spambase": None, "satimage": None, "letter": 5000}  # samples; None: all
NOISES = {"none": 0.0, "uniform-20": 0.2, "uniform-40": 0.4, "next-40": 0.4}
LIBRARIES = ("scikit-learn", "xgboost-cpu", "lightgbm", "catboost", "cleanlab", "numpy")
CV = 5

Cell = dict[str, Any]


def _xgboost(**settings: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, **settings)


def _lightgbm(**settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbosity=-1, **settings)


def _catboost(**settings: Any) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(thread_count=1, verbose=0, allow_writing_files=False, **settings)


def _scaled(make: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    return lambda **settings: make_pipeline(StandardScaler(), make(**fixed, **settings))


# how each is made, and the settings with which it trains as long as ours does
ESTIMATORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "logistic": (_scaled(LogisticRegression), {}),
    "sgd": (_scaled(SGDClassifier, loss="log_loss"), {"max_iter": 40, "tol": None}),
    "mlp": (_scaled(MLPClassifier), {"max_iter": 40}),
    "forest": (RandomForestClassifier, {}),
    "hist": (HistGradientBoostingClassifier, {"max_iter": 15}),
    "xgboost": (_xgboost, {"n_estimators": 15}),
    "lightgbm": (_lightgbm, {"n_estimators": 15}),
    "catboost": (_catboost, {"iterations": 45}),
}


def main() -> None:
    """Run the cells that are missing, or print those that are stored."""
    parser = argparse.ArgumentParser(prog="python -m bench.estimators", description=__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--data", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--table", action="store_true", help="print what is stored")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table(results())))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # solvers that stop early, columns without names
    done = {(row["data"], row["noise"], row["estimator"], row["seed"]) for row in results()}
    for seed, data, noise, name in product(asked.seeds, asked.data, asked.noise, asked.estimators):
        if (data, noise, name, seed) not in done:
            row = cell(data, noise, name, seed)
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")


def results() -> list[Cell]:
    """Every stored cell."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def cell(data: str, noise: str, name: str, seed: int) -> Cell:
    """Flip labels of a table, and let both look for them with the same estimator."""
    code = commit()  # before: the tree may move on during a long cell
    x, true = load(data, seed)
    labels = flip(true, noise, seed)
    is_flipped = labels != true
    make, short = ESTIMATORS[name]
    seeded = {"random_state": seed}
    row: Cell = {"data": data, "noise": noise, "estimator": name, "seed": seed, "num_samples": len(labels)}
    row["undermargin"] = ours(make(**seeded), x, labels, is_flipped, seed)
    row["cleanlab"] = theirs(make(**seeded), x, labels, is_flipped, seed)
    if short:
        row["cleanlab_short"] = theirs(make(**seeded, **short), x, labels, is_flipped, seed)
    found = {side: (row[side]["average_precision"], row[side]["mcc"]) for side in row if side[:5] in ("under", "clean")}
    print(data, noise, name, seed, found, flush=True)
    versions = {library: version(library) for library in LIBRARIES} | {"python": platform.python_version()}
    config = {"cv": CV, "short": short, "size": TABLES[data], "num_threads": 1, "clock": "processor"}
    return row | {"config": config, "commit": code, "versions": versions}


def ours(estimator: Any, x: Any, labels: Any, is_flipped: Any, seed: int) -> Cell:
    """The detector with its defaults, and what the paper's cutoff would have flagged."""
    started = time.process_time()
    detector = MislabelDetector(estimator, random_state=seed).fit(x, labels)
    seconds = time.process_time() - started
    rank = np.empty(len(labels))
    rank[detector.verdicts_.order] = np.arange(len(labels), 0, -1)
    paper = identify(detector.runs_).is_flagged
    found = measured(rank, detector.verdicts_.is_flagged, is_flipped) | {"seconds": round(seconds, 3)}
    return found | {
        "method": detector.method_,
        "paper_mcc": _mcc(is_flipped, paper),
        "paper_share": _round(paper.mean()),
    }


def theirs(estimator: Any, x: Any, labels: Any, is_flipped: Any, seed: int) -> Cell:
    """Cleanlab's flags and ranking from out-of-fold probabilities."""
    started = time.process_time()
    splits = StratifiedKFold(CV, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(clone(estimator), x, labels, cv=splits, method="predict_proba")
    quality = get_label_quality_scores(labels, probabilities)
    flagged = find_label_issues(labels, probabilities, n_jobs=1)
    return measured(-quality, flagged, is_flipped) | {"seconds": round(time.process_time() - started, 3)}


def measured(suspicion: Any, flagged: Any, is_flipped: Any) -> Cell:
    """Average precision of the ranking, Matthews correlation of the flags (None without any noise), share flagged."""
    precision = _round(average_precision_score(is_flipped, suspicion)) if is_flipped.any() else None
    return {"average_precision": precision, "mcc": _mcc(is_flipped, flagged), "flagged_share": _round(flagged.mean())}


def load(data: str, seed: int) -> tuple[Any, Any]:
    """A table's features and true labels; of a large one, a sample drawn by the seed."""
    with np.load(DATA / f"{data}.npz") as file:
        x, y = file["x"], file["y"]
    size = TABLES[data]
    rows = np.random.default_rng(seed).permutation(len(y))[:size] if size else np.arange(len(y))
    return x[rows], y[rows]


def flip(true: Any, noise: str, seed: int) -> Any:
    """Exactly this share of the labels moved, to another class at random or to the next one."""
    rng, num_classes = np.random.default_rng(seed + 1), int(true.max()) + 1
    chosen = rng.permutation(len(true))[: round(NOISES[noise] * len(true))]
    labels = true.copy()
    step = 1 if noise.startswith("next") else rng.integers(1, num_classes, len(chosen))
    labels[chosen] = (labels[chosen] + step) % num_classes
    return labels


def table(rows: list[Cell]) -> Iterator[str]:
    """Means over seeds: AP, MCC, share flagged and seconds, ours / cleanlab / cleanlab trained as short as ours."""
    yield "| data | noise | estimator | seeds | AP | MCC | flagged | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for data, noise, name in product(TABLES, NOISES, ESTIMATORS):
        cells = [row for row in rows if (row["data"], row["noise"], row["estimator"]) == (data, noise, name)]
        if cells:
            sides = [side for side in ("undermargin", "cleanlab", "cleanlab_short") if side in cells[0]]
            shown = [_shown(cells, sides, key) for key in ("average_precision", "mcc", "flagged_share", "seconds")]
            yield f"| {data} | {noise} | {name} | {len(cells)} | {' | '.join(shown)} |"


def _shown(cells: list[Cell], sides: list[str], key: str) -> str:
    if key == "seconds":
        cells = [cell for cell in cells if "clock" in cell["config"]]
    if not cells or cells[0]["undermargin"][key] is None:
        return ""
    digits = 1 if key == "seconds" else 3
    return " / ".join(f"{np.mean([cell[side][key] for cell in cells]):.{digits}f}" for side in sides)


def _mcc(is_flipped: Any, flagged: Any) -> float | None:
    return _round(matthews_corrcoef(is_flipped, flagged)) if is_flipped.any() else None


def _round(number: float) -> float:
    return round(float(number), 4)


if __name__ == "__main__":
    main()
