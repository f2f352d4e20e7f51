"""The figures of docs/beyond-the-paper.md, from the stored runs and results of `bench.verdicts`.

python -m bench.verdict_figures
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from bench.verdicts import WORK
from undermargin import Run

DOCS = Path(__file__).parent.parent / "docs"
SHOWN = {"none": "no noise", "instance20": "instance 20 %", "uniform20": "uniform 20 %", "next40": "next class 40 %"}
COLORS = ("#334e68", "#829ab1", "#c2410c", "#e9a23b")
DATA = "satimage"
NUM_BINS = 8


def main() -> None:
    """Draw both."""
    sys.path.insert(0, str(DOCS))
    import quality_page

    mpl.rcParams["svg.hashsalt"] = "undermargin"  # the same file for the same numbers
    quality_page.draw(_save)
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for (kind, name), color in zip(SHOWN.items(), COLORS, strict=True):
        axes.plot(*_disagreement(WORK / "cells" / f"{DATA}-{kind}-0"), "o-", color=color, label=name, markersize=4)
    axes.set_xlabel("gap between the two likeliest classes (log odds)")
    axes.set_ylabel("held-out labels that disagree")
    axes.set_ylim(0, 0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, title=f"{DATA}, threshold samples")
    _save(figure, DOCS / "images" / "held-out-disagreement.svg")


def _disagreement(folder: Path) -> tuple[Any, Any]:
    """Mean gap and share of disagreeing labels, in bins of equal size."""
    gaps, wrong = [], []
    for path in sorted(folder.glob("fold*.parquet")):
        run = Run.load(path)
        assert run.probabilities is not None
        assert run.labels is not None
        evidence = np.log(run.probabilities[run.is_threshold].clip(1e-6))
        top = np.sort(evidence, axis=1)
        gaps.append(top[:, -1] - top[:, -2])
        wrong.append(evidence.argmax(1) != run.labels[run.is_threshold])
    order = np.argsort(np.concatenate(gaps))
    parts = np.array_split(order, NUM_BINS)
    gap, is_wrong = np.concatenate(gaps), np.concatenate(wrong)
    return [gap[part].mean() for part in parts], [is_wrong[part].mean() for part in parts]


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
