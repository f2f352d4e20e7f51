"""Verdicts on data whose wrong labels are known: P(mislabeled) beside other cutoffs and confident learning.

Each cell trains the folds of a scan once and keeps their runs, so every cutoff is judged from the same training; then
the same network is cross-validated in five folds for cleanlab. One line of bench/verdicts.jsonl per cell.

    UNDERMARGIN_DATA=path python -m bench.verdicts run [--sets letter,trec] [--kinds none,uniform:20] [--seeds 0,1]
    python -m bench.verdicts judge     # judges stored runs again, without training
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from scipy.special import softmax
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import StratifiedKFold

from bench.__main__ import commit
from bench.verdict_sets import DEVELOPMENT, KINDS, SETS, load, noisy
from undermargin import Procedure, Run, Tracker, Verdicts, identify
from undermargin.procedure import trainings
from undermargin.sources.samples import Samples
from undermargin.training.plan import FEATURE_EPOCHS, is_small, num_folds, plan
from undermargin.training.stop import Stop
from undermargin.verdicts.metrics import average_precision

RESULTS = Path(__file__).parent / "verdicts.jsonl"
WORK = Path(os.environ.get("UNDERMARGIN_BENCH_WORK", "bench-work"))
MOST_EPOCHS = 40  # of images: what the stop rule reaches on most of these sets
RULES = {"paper": "paper", "auto": "auto", "gaussian": "gaussian", "zero": 0.0}
BINS = 10


def main() -> None:
    """Run what is missing, or judge again what was run."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "judge"])
    for name, default in (("sets", SETS), ("kinds", KINDS), ("seeds", ("0",))):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=list(default))
    asked = parser.parse_args()
    if asked.what == "run":
        for seed in map(int, asked.seeds):
            for kind in asked.kinds:
                for name in asked.sets:
                    _run(name, kind, seed)
    paths = sorted((WORK / "cells").glob("*/about.json"))
    RESULTS.write_text("".join(json.dumps(_judge(path.parent)) + "\n" for path in paths))


def _run(name: str, kind: str, seed: int) -> None:
    """Train a cell's folds and the cross-validation, and store what is needed to judge them."""
    folder = WORK / "cells" / f"{name}-{kind.replace(':', '')}-{seed}"
    try:
        folder.mkdir(parents=True)  # taken: another process has it, or it is done
    except FileExistsError:
        return
    code, found = commit(), load(name, WORK)
    labels = noisy(found, kind, seed)
    samples = _samples(found, labels)
    started = time.perf_counter()
    epochs = [_train(samples, fold, fold_seed, folder) for fold, fold_seed in _folds(samples, seed)]
    middle = time.perf_counter()
    shares = _cross_validated(samples, round(float(np.mean(epochs))), seed)
    np.savez_compressed(folder / "cell.npz", labels=labels, true=found["y"], shares=shares.astype(np.float32))
    about = {
        "data": name, "kind": kind, "seed": seed, "num_samples": len(labels), "num_classes": samples.num_classes,
        "epochs": epochs, "seconds": round(middle - started, 2),
        "cleanlab_seconds": round(time.perf_counter() - middle, 2),
        "commit": code, "torch": torch.__version__, "num_threads": torch.get_num_threads(),
    }  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about))
    print(name, kind, seed, f"{time.perf_counter() - started:.0f} s", epochs, flush=True)


def _samples(found: dict[str, Any], labels: Any) -> Samples:
    kind = "images" if str(found["kind"]) == "images" else "embeddings"
    names = [str(number) for number in range(int(max(labels.max(), found["y"].max())) + 1)]
    return Samples(kind, found["x"], labels, names, None, {"features": str(found["kind"])})


def _plan(samples: Samples) -> Any:
    chosen = plan(samples)
    most = FEATURE_EPOCHS if samples.found["features"] == "features" else MOST_EPOCHS
    return replace(chosen, budget=replace(chosen.budget, epochs=min(chosen.budget.epochs, most)))


def _folds(samples: Samples, seed: int) -> Any:
    procedure = Procedure.default.with_folds(num_folds(samples))
    return trainings(samples.labels, samples.num_classes, seed=seed, procedure=procedure)


def _train(samples: Samples, fold: Any, seed: int, folder: Path) -> int:
    chosen = _plan(samples)
    engine = chosen.start(fold.labels, fold.num_outputs, seed=seed, budget=chosen.budget)
    tracker, stop = Tracker(len(samples), probabilities=samples.num_classes), Stop()
    while tracker.epoch < chosen.budget.epochs:
        engine.run_epoch(tracker.epoch, tracker.update)
        tracker.end_epoch()
        if stop.is_settled(tracker.epoch, tracker.scores()) and not is_small(samples):
            break
    tracker.run(fold).save(folder / f"fold{fold.number}.parquet")
    return tracker.epoch


def _cross_validated(samples: Samples, epochs: int, seed: int) -> Any:
    """Out-of-fold probabilities of the network that a scan trains: (samples, classes)."""
    chosen, labels = _plan(samples), samples.labels
    shares = np.zeros((len(samples), samples.num_classes))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(labels, labels):
        budget = replace(chosen.budget, epochs=epochs)
        engine = chosen.start(labels, samples.num_classes, seed=seed, budget=budget, rows=train)
        for epoch in range(epochs):
            engine.run_epoch(epoch)
        shares[test] = softmax(engine.predict(test), axis=1)
    return shares


def _judge(folder: Path) -> dict[str, Any]:
    """Every rule's verdicts on a stored cell."""
    about = json.loads((folder / "about.json").read_text())
    with np.load(folder / "cell.npz") as file:
        labels, true, shares = file["labels"], file["true"], file["shares"].astype(np.float64)
    runs = [Run.load(path) for path in sorted(folder.glob("fold*.parquet"))]
    known = true >= 0
    is_wrong = (labels != true)[known]
    ours = identify(runs, "probability")
    rules = {
        "probability": _measured(ours, known, is_wrong),
        "one_fold": _measured(identify(runs[0], "probability"), known, is_wrong),
    }
    rules |= {name: _measured(identify(runs, cutoff), known, is_wrong) for name, cutoff in RULES.items()}
    rules["cleanlab"] = _cleanlab(labels, shares, known, is_wrong)
    estimate = ours.about["estimate"]
    return about | {
        "part": "development" if about["data"] in DEVELOPMENT else "confirmation",
        "rate": float(is_wrong.mean()),
        "estimate": estimate["noise_rate"],
        "interval": estimate["interval"],
        "can_tell": estimate["can_tell"],
        "calibration_error": _calibration_error(ours.probabilities[known], is_wrong),
        "best_mcc": _best_mcc(ours.excess[known], is_wrong),
        "rules": rules,
    }


def _measured(verdicts: Verdicts, known: Any, is_wrong: Any) -> dict[str, float | None]:
    flagged = verdicts.is_flagged[known]
    return _figures(np.nan_to_num(verdicts.excess[known], nan=np.inf), flagged, is_wrong)


def _figures(scores: Any, flagged: Any, is_wrong: Any) -> dict[str, float | None]:
    """Average precision of the ranking; Matthews correlation, precision, recall and share of the flags."""
    hits = float((flagged & is_wrong).sum())
    finite = np.where(np.isfinite(scores), scores, np.nanmax(np.where(np.isfinite(scores), scores, np.nan)) + 1)
    return {
        "average_precision": average_precision(-finite, is_wrong) if is_wrong.any() else None,
        "mcc": float(matthews_corrcoef(is_wrong, flagged)) if is_wrong.any() else None,
        "precision": hits / flagged.sum() if flagged.any() else None,
        "recall": hits / is_wrong.sum() if is_wrong.any() else None,
        "flagged_share": float(flagged.mean()),
    }


def _cleanlab(labels: Any, shares: Any, known: Any, is_wrong: Any) -> dict[str, float | None]:
    """The flags and the ranking of confident learning."""
    present, own = np.unique(labels, return_inverse=True)
    chosen = shares[:, present] / shares[:, present].sum(1, keepdims=True).clip(1e-12)
    flagged = np.asarray(find_label_issues(own, chosen, n_jobs=1), bool)
    return _figures(np.asarray(get_label_quality_scores(own, chosen))[known], flagged[known], is_wrong)


def _best_mcc(scores: Any, is_wrong: Any) -> float | None:
    """The Matthews correlation of the best of all cuts of a ranking."""
    if not is_wrong.any():
        return None
    wrong = is_wrong[np.argsort(scores, kind="stable")]
    number = np.arange(1, len(wrong))
    hits = np.cumsum(wrong)[:-1].astype(float)
    total = float(wrong.sum())
    false = number - hits
    product = number * total * (len(wrong) - total) * (len(wrong) - number)
    return float(((hits * (len(wrong) - total - false) - false * (total - hits)) / np.sqrt(product)).max())


def _calibration_error(probabilities: Any, is_wrong: Any) -> float:
    """Expected calibration error over ten bins."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    parts = [bins == number for number in range(BINS)]
    return float(
        sum(part.mean() * abs(probabilities[part].mean() - is_wrong[part].mean()) for part in parts if part.any())
    )


if __name__ == "__main__":
    main()
