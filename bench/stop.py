"""The stop rule against longer training: average precision where a scan stops, and the best of three times as long.

UNDERMARGIN_DATA=path python -m bench.stop [cifar10|mnist ...]
"""

import gzip
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.__main__ import commit
from undermargin import Tracker, noise
from undermargin.procedure import Procedure, folds
from undermargin.sources.samples import Reading, Samples
from undermargin.sources.source import load
from undermargin.training.plan import plan
from undermargin.training.stop import Stop
from undermargin.verdicts import metrics

DATA = Path(os.environ.get("UNDERMARGIN_DATA", "data"))
RESULTS = Path(__file__).parent / "stop.jsonl"
SIZE, SEED, TIMES = 4000, 0, 3
RATES = (0.2, 0.4)


def main() -> None:
    """Run what is missing."""
    done = {(row["data"], row["rate"]) for row in results()}
    for name in sys.argv[1:] or list(SETS):
        for rate in RATES:
            if (name, rate) not in done:
                code = commit()
                row = {"data": name, "rate": rate, "samples": SIZE, "seed": SEED, **measure(name, rate), "commit": code}
                print(row, flush=True)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def results() -> list[dict[str, Any]]:
    """Every stored run."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def measure(name: str, rate: float) -> dict[str, Any]:
    """Train the first fold until it would stop, and then twice as long again."""
    clean = SETS[name]()
    labels = noise.uniform(clean.labels, rate, clean.num_classes, seed=SEED)
    chosen = plan(replace(clean, labels=labels))
    fold = folds(labels, clean.num_classes, seed=SEED, procedure=Procedure.default)[0]
    engine = chosen.start(fold.labels, fold.num_outputs, seed=SEED, budget=chosen.budget)
    tracker, stop, stopped, precisions = Tracker(len(labels)), Stop(), 0, []
    judged = ~fold.is_threshold
    while not stopped or tracker.epoch < TIMES * stopped:
        engine.run_epoch(tracker.epoch, tracker.update)
        tracker.end_epoch()
        scores = tracker.scores("aum")
        precisions.append(metrics.average_precision(-scores[judged], (labels != clean.labels)[judged]))
        if not stopped and (stop.is_settled(tracker.epoch, scores) or tracker.epoch == chosen.budget.epochs):
            stopped = tracker.epoch
    return {
        "most_epochs": chosen.budget.epochs,
        "stopped": stopped,
        "average_precision": precisions[stopped - 1],
        "best": max(precisions),
        "best_epoch": int(np.argmax(precisions)) + 1,
    }


def _cifar10() -> Samples:
    frame = pd.read_parquet(DATA / "cifar10_train.parquet", columns=["image", "label"]).sample(SIZE, random_state=SEED)
    return load(frame.reset_index(drop=True), Reading(label="label"))


def _mnist() -> Samples:
    images, labels = (
        np.frombuffer(gzip.decompress(next((DATA / "mnist").glob(f"train-{kind}*")).read_bytes())[skip:], np.uint8)
        for kind, skip in (("images", 16), ("labels", 8))
    )
    rows = np.random.default_rng(SEED).permutation(len(labels))[:SIZE]
    return load((images.reshape(-1, 28, 28)[rows], labels[rows]))


SETS = {"mnist": _mnist, "cifar10": _cifar10}

if __name__ == "__main__":
    main()
