"""docs/paper.md: every experiment with its tables and figures, ours beside the paper's."""

from pathlib import Path
from typing import Any

from undermargin.paper import EXPERIMENTS, Results, Store
from undermargin.paper.experiment import Experiment

ROOT = Path(__file__).parent.parent
STORE = ROOT / "paper"
NOTES = Path(__file__).parent / "paper-notes.md"
PRESET = "laptop"

INTRODUCTION = """# The paper, reproduced

Generated from `paper/results.jsonl` (`make docs`).

```text
undermargin paper list                                    every experiment: claim and cost
undermargin paper datasets --data data                    which data sets are found, and where the others belong
undermargin paper table-cifar-uniform --dry-run           what would be run, and about how long that takes
undermargin paper table-cifar-uniform --preset laptop     run what is missing, write the table
undermargin paper all --preset paper --ray                everything, at the paper's size, on a cluster
```

Figures need matplotlib: `pip install 'undermargin[paper]'`. Results, tables and figures are in the folder that `--out`
names. So is `work`, with the checkpoints of what is running and with photos that do not fit into memory, decoded
(ImageNet at the paper's size: 262 GB); delete it when all is run.

Three presets:

- `paper` has the sizes and settings of the paper's text and needs a GPU; no result of it is stored here.
- `laptop` is the same procedure with a smaller network, fewer samples and fewer epochs.
- `smoke` takes a minute, and trains on scikit-learn's digits whatever the data set's name.

**Every number below is of the laptop preset unless its column is called paper: those are the paper's own, of networks
and data several times as large, and only their order can be compared with ours.** What has not been run yet is empty.
CIFAR-10 was read from Parquet files with its images encoded as JPEG.

A seed gives the same numbers again on the same kind of processor. Other vector instructions round differently, and a
training ends elsewhere, as with another seed. Every line of [results.jsonl](../paper/results.jsonl) since that was seen
names them; those of commit 3331f7b are of AVX-512. A newer x86 processor rounds as one with AVX2 does when it is told
to:

```bash
ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 undermargin paper figure-densities --preset laptop --data data
```

So run on another processor, the three cells of this figure came out the same to the last digit.

What preset `paper` does where the text is silent:

- Recipes have their own authors' settings; their cards in [methods.md](methods.md) name the sources.
- All of them are trained by the paper's schedule: SGD, its batches and drops. The paper ran the baselines by their
  authors' code, some of it with Adam and without augmentation (the cards say which).
- Uniform noise never draws the true class, as in the authors' code.
- Ours are MNIST's schedule and one seed for each ablation.
- L_DMI holds out a fifth of the noisy labels and ends with the epoch that is best on them, as its authors choose; of
  all others the last epoch counts.

Columns: `needs` is what a recipe must be told beside the labels (`noise_rate`: the share of wrong ones; `pattern`:
whether noise is uniform or asymmetric; `is_clean`: whose label is right; `trusted`, `true_labels`: some samples with
true labels); `mcc` is Matthews' correlation between flagged and mislabeled; ± is the standard deviation over seeds.
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
    """What was spent on the cells, each on one thread; what a cell took over from others is not counted again."""
    hours = sum(row["seconds"] for row in rows) / 3600
    return f", in {hours:.1f} hours of a core" if rows else ""


def _claim(experiment: Experiment) -> str:
    return f"The paper: {experiment.claim}." if experiment.claim else "Not in the paper."


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
    """What we say about an experiment, below `## name` in the file of notes."""
    parts = NOTES.read_text().split("\n## ")[1:] if NOTES.is_file() else []
    return {part.partition("\n")[0].strip(): part.partition("\n")[2].strip() + "\n" for part in parts}
