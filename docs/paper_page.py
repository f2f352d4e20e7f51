"""docs/paper.md: every experiment with its tables and figures, our results next to the paper's."""

from pathlib import Path
from typing import Any

from undermargin.paper import EXPERIMENTS, Preset, Results, Store, names
from undermargin.paper.experiment import Experiment

ROOT = Path(__file__).parent.parent
STORE = ROOT / "paper"
NOTES = Path(__file__).parent / "paper-notes.md"
INTRODUCTION = """# The paper, reproduced

This page is generated from `paper/results.jsonl` (`make docs`).

```text
undermargin paper list                                    list the experiments with their claims and costs
undermargin paper datasets --data data                    show which data sets were found, and where to put the others
undermargin paper all --preset desktop --dry-run          show what would be run, and about how long it takes
undermargin paper table-cifar-uniform --preset desktop    run what is missing, write the table
undermargin paper all --preset paper --ray                run everything at the paper's size on a cluster
```

Figures need matplotlib: `pip install "undermargin[paper]"`. Results, tables and figures are written to the folder given
by `--out`. Its subfolder `work` has the checkpoints of running experiments, the logits of trainings that several
experiments share, and decoded photos that do not fit into memory (ImageNet at the paper's size: 262 GB). Delete it when
everything has been run. An experiment that is killed resumes when the same command is run again.

## Presets

- `paper` has the sizes and settings of the paper's text and needs a GPU. None of its results are stored here.
- `desktop` has all of the paper's 45,000 training images of CIFAR-10, all 10,000 test images, and the paper's batch
  sizes and drops of the learning rate. The network is ResNet-32 with a first convolution that halves the image, trained
  in bf16 if the processor has instructions for it, for 60 epochs without augmentation and for the paper's 300 epochs
  with it. Each result names its commit and precision.
- `laptop` is the same procedure with a still smaller network, 10,000 samples and 60 epochs.
- `smoke` takes a minute. It trains on scikit-learn's digits, whatever the name of the data set.

**Columns named "paper" contain the paper's numbers; all others are ours, from the preset that the caption names.** In
the laptop preset, networks and data are several times smaller than the paper's, so only the order of methods can be
compared. Empty cells have not been run yet. CIFAR-10 was read from Parquet files that contain its images as JPEG.

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


PARTS: dict[Preset, str] = {
    "desktop": """## Desktop size: CIFAR-10 with 45,000 images

Experiments of the preset `desktop`. They run for days; the tables contain what has been run so far.
""",
    "laptop": """## Laptop size

Experiments of the preset `laptop`: 10,000 images of CIFAR-10 and of MNIST, and 20 classes of Tiny ImageNet.
""",
}


def page() -> str:
    """The whole page."""
    sections = [INTRODUCTION]
    notes = _notes()
    for preset, opening in PARTS.items():
        results = Results.read(Store(STORE), preset, Path())
        rows = {name: _rows(name, results) for name in names(preset)}
        sections.append(opening)
        for name in (name for name, found in rows.items() if found):
            sections += _experiment(name, rows[name], results, notes)
        absent = [f"`{name}`" for name, found in rows.items() if not found]
        if absent:
            sections.append(f"Not run yet: {', '.join(absent)}.\n")
        commits = sorted({row["commit"] for row in results.rows.values() if row["preset"] == preset})
        if commits:
            sections.append(f"Commits: {', '.join(f'`{commit}`' for commit in commits)}.\n")
    return "\n".join(sections)


def _rows(name: str, results: Results) -> list[dict[str, Any]]:
    """The stored results of an experiment."""
    return [results.rows[cell.key] for cell in EXPERIMENTS[name].cells(results.preset) if cell.key in results.rows]


def _experiment(name: str, rows: list[dict[str, Any]], results: Results, notes: dict[str, str]) -> list[str]:
    """One experiment: claim, cost and progress, our notes, tables and figures."""
    experiment, preset = EXPERIMENTS[name], results.preset
    is_desktop = preset == "desktop"
    title = experiment.title.removesuffix(", CIFAR-10 and CIFAR-100") if is_desktop else experiment.title
    progress = f"{len(rows)} of {len(experiment.cells(preset))} cells have been run{_hours(rows)}."
    about = [
        f"### {title}{', 45,000 images' * is_desktop}",
        _claim(experiment),
        *([] if is_desktop else [f"Cost at the paper's size: {experiment.cost}."]),
        f"`undermargin paper {name} --preset {preset}`: {progress}",
    ]
    note = notes.get(f"{preset} {name}" if is_desktop else name)
    tables = [table.markdown() for table in experiment.tables(results) if table.is_listed and table.rows]
    figures = [
        f"![{one}](../paper/figures/{preset}/{one}.svg)\n"
        for one in FIGURES.get(name, ())
        if (STORE / "figures" / preset / f"{one}.svg").is_file()
    ]
    return ["\n\n".join(about) + "\n", *([note] if note else []), *tables, *figures]


def _hours(rows: list[dict[str, Any]]) -> str:
    """The time spent on the cells, each with one thread; work that a cell reuses from others is not counted again."""
    hours = sum(row.get("cpu_seconds", row["seconds"]) for row in rows) / 3600
    return f", in {hours:.1f} core hours" if rows else ""


def _claim(experiment: Experiment) -> str:
    return f"Claim of the paper: {experiment.claim}." if experiment.claim else "This experiment is not in the paper."


FIGURES = {
    "figure-precision-recall": (
        "identification-cifar10-uniform",
        "identification-cifar10-uniform-augmented",
        "identification-mnist-uniform",
    ),
    "figure-precision-recall-asymmetric": (
        "identification-cifar10-asymmetric",
        "identification-cifar10-asymmetric-augmented",
        "identification-mnist-asymmetric",
    ),
    "figure-histograms": ("histograms",),
    "figure-densities": ("densities",),
    "figure-lowest": ("lowest-mnist", "lowest-cifar10", "lowest-tiny-imagenet"),
    "figure-trajectories": ("trajectories",),
    "figure-margins": ("margins",),
    "figure-removal": ("removal", "removal-noisy"),
    "figure-percentiles": ("percentiles",),
    "table-architectures": ("architectures",),
}


def _notes() -> dict[str, str]:
    """The notes on each experiment, from the sections `## name` of the file of notes."""
    parts = NOTES.read_text().split("\n## ")[1:] if NOTES.is_file() else []
    return {part.partition("\n")[0].strip(): part.partition("\n")[2].strip() + "\n" for part in parts}
