"""docs/methods.md: the card of every recipe, with the table of recipes and stored results."""

from pathlib import Path

from measured import wrapped

from undermargin.paper import Results, Store
from undermargin.paper.experiments.errors import MIDDLE, cells
from undermargin.paper.published import DIVERGED
from undermargin.paper.study import study
from undermargin.paper.tables import percent
from undermargin.recipes import RECIPES

CARDS = Path(__file__).parent / "methods"
STORE = Path(__file__).parent.parent / "paper"
DATA = "mnist"

INTRODUCTION = """# Recipes

This page is generated from the table of recipes, the cards in `docs/methods/` and `paper/results.jsonl` (`make docs`).

A recipe is a method for training on noisy labels. All recipes use the same training loop, and a tracker observes all of
them:

```python
import numpy as np

from undermargin import noise, recipes

rng = np.random.default_rng(0)
true_labels = np.repeat([0, 1, 2], 100)
x = rng.normal(3 * true_labels[:, None], 1, (300, 4)).astype("float32")
labels = noise.uniform(true_labels, 0.2, 3, seed=0)

fitted = recipes.fit(
    (x, labels),
    recipe="co_teaching",
    known=recipes.Known(noise_rate=0.2),
    budget=recipes.Budget(epochs=5, batch_size=32),
    test=(x, true_labels),
)
fitted.test_error(), fitted.scores["aum"], fitted.predict(np.arange(10))
```

The training set and the test set can be anything that `scan` accepts: a path, (inputs, labels), a data frame, a data
set. For an official data set, use `official.load("mnist", "data").samples()`. `recipe` is a name, or a method with
settings of your own, such as `CoTeaching(gradual_epochs=5)`. With `folder=`, checkpoints are written, and the same call
resumes an interrupted training. The result, `Fitted`, has the classifier, the tracker's scores and, depending on the
recipe, its own score, verdicts, weights or soft labels.

The network, the number of epochs and the augmentation are chosen from the data, as in a scan, unless you specify them:

```python
from sklearn.datasets import load_digits
from torch import nn

digits = load_digits()
noisy = noise.uniform(digits.target, 0.3, 10, seed=0)

fitted = recipes.fit(
    (digits.images, noisy),
    recipe="aum",
    model=lambda outputs: nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)),
    budget=recipes.Budget(epochs=10, batch_size=32, learning_rate=0.01),
    is_augmented=False,
    test=(digits.images, digits.target),
)
fitted.test_error(), fitted.verdicts.summary()["flagged_share"]
```

- `model` is a function from the number of outputs to a network. (Recipe `aum` asks for one output more than there are
  classes.) The network gets images as floats around 0, (batch, channels, height, width), and other data with mean 0 and
  standard deviation 1. For the [paper's networks](official-data.md#networks), pass the name: `model="lenet5"`.
- `Budget` defaults to the paper's optimizer: SGD with learning rate .1, momentum .9 and weight decay 1e-4, for networks
  with batch normalization. For networks without it, use a tenth of that learning rate, or `optimizer="adamw"` with
  .001. Whether a recipe helps can depend on the learning rate, so compare recipes at one that works well for standard
  training.
- Images are shifted at random, and mirrored if they are in color. Use `is_augmented=False` for networks without
  convolutions or for very short trainings.

## Overview
"""


def page() -> str:
    """The whole page."""
    results = Results.read(Store(STORE), "laptop", Path())
    cards = [text for name in _files() for text in (_card(name), "")]
    return "\n".join([INTRODUCTION, *_table(results), "", *cards]).rstrip() + "\n"


def _table(results: Results) -> list[str]:
    how = study("laptop", DATA)
    lines = [
        wrapped(
            f"Results with {how.num_train:,} digits of MNIST, {MIDDLE[1]:.0%} uniform noise, {how.model} and",
            f"{how.budget.epochs} epochs at a learning rate of {how.budget.learning_rate:g}:",
            f"the test error after the last epoch in %, over {how.num_trials} seeds, and the average precision with",
            "which the recipe's own score, if it has one, finds the flipped labels",
            "(`undermargin paper table-mnist --preset laptop`).",
        ).rstrip(),
        "",
        "| recipe | idea | paper | needs | networks | trainings | test error | average precision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in RECIPES.items():
        same = cells("laptop", DATA, [MIDDLE], [name])
        done = results.all(same)
        errors = [numbers["test_error"] for numbers in done]
        error = DIVERGED if results.has_diverged(same) else percent(errors, how.num_trials)
        own = [numbers["scores"][name] for numbers in done if name in numbers["scores"]]
        needs = ", ".join(need.replace("_", " ") for need in row.needs)
        lines.append(
            f"| `{name}` | {row.description} | {row.paper} | {needs} | {row.num_networks} | {row.trainings} "
            f"| {error or 'not run'} | {percent(own)} |"
        )
    commits = sorted({row["commit"] for row in results.rows.values() if row["data"] == DATA})
    return [*lines, "", f"Commits: {', '.join(f'`{commit}`' for commit in commits) or 'none yet'}."]


def _files() -> list[str]:
    """The cards in the order of the table; one card may describe several rows."""
    titles = {path.stem: path.read_text().splitlines()[0] for path in CARDS.glob("*.md")}
    named = {name: next((stem for stem, title in titles.items() if name in _names(title)), "") for name in RECIPES}
    missing = [name for name, stem in named.items() if not stem]
    if missing:
        raise SystemExit(f"there is no card in docs/methods for {', '.join(missing)}; write one")
    return list(dict.fromkeys(named.values()))


def _names(title: str) -> list[str]:
    return [name.strip().strip("`") for name in title.removeprefix("# ").replace(" and ", ",").split(",")]


def _card(stem: str) -> str:
    lines = (CARDS / f"{stem}.md").read_text().rstrip().splitlines()
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines)
