"""docs/paper.md: every experiment with its tables and figures, our results next to the paper's."""

from pathlib import Path
from typing import Any

from undermargin.paper import EXPERIMENTS, Results, Store
from undermargin.paper.experiment import Experiment

ROOT = Path(__file__).parent.parent
STORE = ROOT / "paper"
NOTES = Path(__file__).parent / "paper-notes.md"
PRESET = "laptop"

INTRODUCTION = """# The paper, reproduced

This page is generated from `paper/results.jsonl` (`make docs`).

```text
undermargin paper list                                    list the experiments with their claims and costs
undermargin paper datasets --data data                    show which data sets were found, and where to put the others
undermargin paper table-cifar-uniform --dry-run           show what would be run, and about how long it takes
undermargin paper table-cifar-uniform --preset laptop     run what is missing, write the table
undermargin paper all --preset paper --ray                run everything at the paper's size on a cluster
```

Figures need matplotlib: `pip install "undermargin[paper]"`. Results, tables and figures are written to the folder given
by `--out`. Its subfolder `work` has the checkpoints of running experiments, and decoded photos that do not fit into
memory (ImageNet at the paper's size: 262 GB). Delete it when everything has been run.

## Presets

- `paper` has the sizes and settings of the paper's text and needs a GPU. None of its results are stored here.
- `laptop` is the same procedure with a smaller network, fewer samples and fewer epochs.
- `smoke` takes a minute. It trains on scikit-learn's digits, whatever the name of the data set.

**All numbers below are from the laptop preset, except in columns named "paper". Those are the paper's numbers, obtained
with networks and data several times as large, so only the order of methods can be compared.** Empty cells have not been
run yet. CIFAR-10 was read from Parquet files that contain its images as JPEG.

## Reproducibility

A seed gives the same numbers on the same kind of processor. Processors with other vector instructions round
differently, so that a training ends with other weights, as it would with another seed. Since this was discovered, every
line of [results.jsonl](../paper/results.jsonl) names the instructions; the results of commit 3331f7b are from AVX-512.
A newer x86 processor can be made to round like one with AVX2:

```bash
ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 undermargin paper figure-densities --preset laptop --data data
```

Run like this on another processor, the three cells of this figure were identical to the last digit.

## Choices that the paper leaves open

In the preset `paper`:

- Recipes have the settings of their own authors; the cards in [recipes](methods.md) name the sources.
- All recipes are trained with the paper's schedule: SGD with its batch sizes and drops of the learning rate. The paper
  ran the baselines with their authors' code, some of it with Adam and without augmentation (the cards say which).
- Uniform noise never draws the true class, as in the authors' code.
- The schedule for MNIST, and one seed per ablation, are our choices.
- L_DMI holds out a fifth of the noisy labels and uses the epoch that is best on them, as its authors do. For all other
  recipes the last epoch counts.

## Columns

- `needs`: what a recipe must know in addition to the labels. `noise_rate`: the share of wrong labels; `pattern`:
  whether the noise is uniform or asymmetric; `is_clean`: which labels are right; `trusted`, `true_labels`: some samples
  with true labels.
- `mcc`: Matthews correlation between flagged and mislabeled.
- ±: standard deviation over seeds.
"""


def page() -> str:
    """The whole page."""
    results = Results.read(Store(STORE), PRESET, Path())
    sections = [INTRODUCTION]
    notes = _notes()
    for name, experiment in EXPERIMENTS.items():
        cells = experiment.cells(PRESET)
        rows = [results.rows[cell.key] for cell in cells if cell.key in results.rows]
        done = len(rows)
        sections.append(
            f"## {experiment.title}\n\n{_claim(experiment)}\n\n"
            f"Cost at the paper's size: {experiment.cost}.\n\n"
            f"`undermargin paper {name} --preset {PRESET}`: {done} of {len(cells)} cells have been run{_hours(rows)}.\n"
        )
        if name in notes:
            sections.append(notes[name])
        if done:
            sections += [table.markdown() for table in experiment.tables(results) if table.is_listed and table.rows]
        sections += [
            f"![{title}](../paper/figures/{PRESET}/{title}.svg)\n"
            for title in FIGURES.get(name, ())
            if _is_drawn(title)
        ]
    commits = sorted({row["commit"] for row in results.rows.values()})
    if commits:
        sections.append(f"Commits: {', '.join(f'`{commit}`' for commit in commits)}.\n")
    return "\n".join(sections)


def _hours(rows: list[dict[str, Any]]) -> str:
    """The time spent on the cells, each with one thread; work that a cell reuses from others is not counted again."""
    hours = sum(row["seconds"] for row in rows) / 3600
    return f", in {hours:.1f} core hours" if rows else ""


def _claim(experiment: Experiment) -> str:
    return f"Claim of the paper: {experiment.claim}." if experiment.claim else "This experiment is not in the paper."


FIGURES = {
    "figure-precision-recall": ("identification-cifar10-uniform", "identification-mnist-uniform"),
    "figure-precision-recall-asymmetric": ("identification-cifar10-asymmetric", "identification-mnist-asymmetric"),
    "figure-histograms": ("histograms",),
    "figure-densities": ("densities",),
    "figure-lowest": ("lowest-mnist", "lowest-cifar10", "lowest-tiny-imagenet"),
    "figure-trajectories": ("trajectories",),
    "figure-margins": ("margins",),
    "figure-removal": ("removal",),
    "figure-percentiles": ("percentiles",),
    "table-architectures": ("architectures",),
}


def _is_drawn(title: str) -> bool:
    return (STORE / "figures" / PRESET / f"{title}.svg").is_file()


def _notes() -> dict[str, str]:
    """The notes on each experiment, from the sections `## name` of the file of notes."""
    parts = NOTES.read_text().split("\n## ")[1:] if NOTES.is_file() else []
    return {part.partition("\n")[0].strip(): part.partition("\n")[2].strip() + "\n" for part in parts}
