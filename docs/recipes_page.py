"""docs/methods.md: every recipe's card, with what it needs from the table and what was measured from the store."""

from pathlib import Path

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

Generated from the table of recipes, the cards in `docs/methods/` and `paper/results.jsonl` (`make docs`).

A recipe trains on noisy labels. All are trained by the same loop, and a tracker watches any of them:

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

`train` and `test` are whatever `scan` takes: a path, (inputs, labels), a frame, a data set; of an official data set,
`official.load("mnist", "data").samples()`. `recipe` is a name, or a method with settings of one's own, such as
`CoTeaching(gradual_epochs=5)`. `folder=` takes checkpoints: the same call goes on where it was killed. `Fitted` has the
classifier, the tracker's scores, and where the recipe has them its own score, verdicts, weights or soft labels.

Network, length and augmentation are chosen from the data, as for a scan, or named:

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

- `model` makes a network from a number of outputs (recipe `aum` asks for one more than there are classes). Images come
  to it as numbers around 0, (batch, channels, height, width), everything else as numbers of mean 0 and deviation 1. The
  [paper's networks](official-data.md) go by their names: `model="lenet5"`.
- `Budget` is the paper's optimizer unless it says otherwise: SGD with a rate of .1, momentum .9 and decay 1e-4, for
  networks with batch normalisation. One without wants a tenth of that rate, or `optimizer="adamw"` with .001. Whether
  a recipe helps can depend on it: compare recipes at a rate that standard training likes.
- Images are shifted, and mirrored if they are coloured, unless `is_augmented=False`: a network
  without convolutions, or few epochs, may want them as they are.
"""


def page() -> str:
    """The whole page."""
    results = Results.read(Store(STORE), "laptop", Path())
    cards = [text for name in _files() for text in (_card(name), "")]
    return "\n".join([INTRODUCTION, *_table(results), "", *cards]).rstrip() + "\n"


def _table(results: Results) -> list[str]:
    how = study("laptop", DATA)
    lines = [
        f"Measured with {how.num_train:,} digits of MNIST, {MIDDLE[1]:.0%} uniform noise, {how.model}, "
        f"{how.budget.epochs} epochs at a learning rate of",
        f"{how.budget.learning_rate:g}: the last epoch's test error in %, over {how.num_trials} seeds, and the average "
        "precision of the flipped labels",
        "by the recipe's own score where it has one (`undermargin paper table-mnist --preset laptop`).",
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
    """Cards in the order of the table; one may serve several rows."""
    titles = {path.stem: path.read_text().splitlines()[0] for path in CARDS.glob("*.md")}
    named = {name: next((stem for stem, title in titles.items() if name in _names(title)), "") for name in RECIPES}
    missing = [name for name, stem in named.items() if not stem]
    if missing:
        raise SystemExit(f"no card in docs/methods for {', '.join(missing)}")
    return list(dict.fromkeys(named.values()))


def _names(title: str) -> list[str]:
    return [name.strip().strip("`") for name in title.removeprefix("# ").replace(" and ", ",").split(",")]


def _card(stem: str) -> str:
    lines = (CARDS / f"{stem}.md").read_text().rstrip().splitlines()
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines)
