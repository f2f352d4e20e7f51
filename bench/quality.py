"""Found labels on real data with flips of our own: `undermargin scan` with its defaults beside confident learning.

Confident learning is cleanlab's, on 5-fold cross-validated probabilities of the same network, trained as long on the
same inputs. Every cell is one line of bench/quality.jsonl; cells that are there are not run again.

    UNDERMARGIN_DATA=path python -m bench.quality [data set ...]
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold

from bench.__main__ import commit
from undermargin import Verdicts, noise
from undermargin.sources.samples import Samples
from undermargin.sources.source import load
from undermargin.training.plan import plan
from undermargin.verdicts import metrics

DATA = Path(os.environ.get("UNDERMARGIN_DATA", "data"))
RESULTS = Path(__file__).parent / "quality.jsonl"
RATES, SEEDS = (0.2, 0.4), (0, 1)
CIFAR_SIZE = 10_000


def main() -> None:
    """Run what is missing; `make docs` turns the results into docs/quality.md."""
    chosen = sys.argv[1:] or list(SETS)
    done = {(row["data"], row["rate"], row["seed"]) for row in results()}
    for name in chosen:
        for rate in RATES:
            for seed in SEEDS:
                if (name, rate, seed) not in done:
                    row = cell(name, rate, seed)
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(row) + "\n")


def results() -> list[dict[str, Any]]:
    """Every stored cell."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def cell(name: str, rate: float, seed: int) -> dict[str, Any]:
    """Flip, scan through the command line, and let confident learning try the same."""
    code = commit()  # before: the tree may move on during a long cell
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, is_flipped, options = SETS[name](folder, rate, seed)
        out = folder / "scan"
        words = [sys.executable, "-m", "undermargin", "scan", str(source), "--out", str(out), "--json", *options]
        started = time.perf_counter()
        subprocess.run([*words, "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
        ours = metrics.identification(Verdicts.load(out / "verdicts.parquet"), is_flipped)
        ours["seconds"] = time.perf_counter() - started
        epochs = round(np.mean(json.loads((out / "summary.json").read_text())["epochs"]))
        theirs = confident_learning(load(source), is_flipped, seed, epochs)
    row = {"data": name, "rate": rate, "seed": seed, "undermargin": ours, "cleanlab": theirs}
    print(name, rate, seed, {key: (round(ours[key], 3), round(theirs[key], 3)) for key in ours}, flush=True)
    return row | {"commit": code, "num_threads": torch.get_num_threads(), "torch": torch.__version__}


def confident_learning(samples: Samples, is_flipped: Any, seed: int, epochs: int) -> dict[str, float]:
    """Cleanlab's flags and ranking from out-of-fold probabilities of the network that scan would train."""
    started = time.perf_counter()
    chosen, labels = plan(samples), samples.labels
    budget = replace(chosen.budget, epochs=epochs)
    probabilities = np.zeros((len(samples), samples.num_classes))
    for train_rows, test_rows in StratifiedKFold(5, shuffle=True, random_state=seed).split(labels, labels):
        engine = chosen.start(labels, samples.num_classes, seed=seed, budget=budget, rows=train_rows)
        for epoch in range(epochs):
            engine.run_epoch(epoch)
        probabilities[test_rows] = softmax(engine.predict(test_rows), axis=1)
    quality = get_label_quality_scores(labels, probabilities)
    flagged = find_label_issues(labels, probabilities)
    verdicts = Verdicts(
        codes=np.where(flagged, 0, 1).astype(np.int8),
        scores=quality,
        excess=quality,
        judged_by=np.ones(len(labels), np.int16),
    )
    found = metrics.identification(verdicts, is_flipped)
    # cleanlab ranks by quality alone, flagged or not
    found["average_precision"] = metrics.average_precision(-quality, is_flipped)
    return found | {"seconds": time.perf_counter() - started}


Source = tuple[Path, Any, list[str]]


def _text(name: str) -> Callable[[Path, float, int], Source]:
    def make(folder: Path, rate: float, seed: int) -> Source:
        frame = pd.read_csv(DATA / f"{name}.csv")
        frame = frame[frame["split"] == "train"].drop(columns="split")
        frame["label"], is_flipped = _flip_names(frame["label"], rate, seed)
        frame.to_csv(folder / "data.csv", index=False)
        return folder / "data.csv", is_flipped, []

    return make


def _table(name: str) -> Callable[[Path, float, int], Source]:
    def make(folder: Path, rate: float, seed: int) -> Source:
        with np.load(DATA / "tabular" / f"{name}.npz") as file:
            x, y = file["x"], file["y"]
        noisy = noise.uniform(y, rate, int(y.max()) + 1, seed=seed)
        np.savez(folder / "data.npz", x=x, y=noisy)
        return folder / "data.npz", noisy != y, []

    return make


def _adult(folder: Path, rate: float, seed: int) -> Source:
    frame = pd.read_parquet(DATA / "tabular" / "adult.parquet")
    frame = frame[frame["split"] == "train"].drop(columns="split")
    frame["y"], is_flipped = _flip_names(frame["y"], rate, seed)
    frame.to_parquet(folder / "data.parquet", index=False)
    return folder / "data.parquet", is_flipped, []


def _cifar(folder: Path, rate: float, seed: int) -> Source:
    frame = pd.read_parquet(DATA / "cifar10_train.parquet", columns=["image", "label"])
    frame = frame.sample(CIFAR_SIZE, random_state=seed).reset_index(drop=True)
    frame["label"], is_flipped = _flip_names(frame["label"], rate, seed)
    frame.to_parquet(folder / "data.parquet", index=False)
    return folder / "data.parquet", is_flipped, []


def _trashnet(folder: Path, rate: float, seed: int) -> Source:
    with tarfile.open(DATA / "trashnet.tar") as archive:
        archive.extractall(folder / "clean", filter="data")
    files = sorted((folder / "clean").rglob("*.jpg"))
    names = pd.Series([file.parent.name for file in files])
    noisy, is_flipped = _flip_names(names, rate, seed)
    placed = []
    for file, name in zip(files, noisy, strict=True):
        target = folder / "photos" / name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)
        placed.append(target)
    order = sorted(range(len(placed)), key=lambda row: (placed[row].parent.name, placed[row]))
    return folder / "photos", np.asarray(is_flipped)[order], []


def _flip_names(labels: "pd.Series[Any]", rate: float, seed: int) -> tuple[Any, Any]:
    numbers, names = pd.factorize(labels, sort=True)
    noisy = noise.uniform(numbers, rate, len(names), seed=seed)
    return names[noisy], noisy != numbers


SETS: dict[str, Callable[[Path, float, int], Source]] = {
    "trec": _text("trec"),
    "sst2": _text("sst2"),
    "banking77": _text("banking77"),
    "letter": _table("letter"),
    "satimage": _table("satimage"),
    "adult": _adult,
    "trashnet": _trashnet,
    "cifar10": _cifar,
}


if __name__ == "__main__":
    main()
