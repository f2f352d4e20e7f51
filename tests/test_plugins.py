"""Other people's scores, cutoffs and recipes, out of real, tiny distributions as pip would leave them."""

import os
import subprocess
import sys
import textwrap

import pytest

from undermargin.cutoffs import CUTOFFS, Cutoff
from undermargin.errors import InputError, UndermarginWarning
from undermargin.plugins import Table
from undermargin.recipes import RECIPES, Recipe
from undermargin.tracking.scores import SCORES, Score

# copies, read now: later, packages that a test installs would be found
FAMILIES = {
    "scores": (Score, dict(SCORES)),
    "cutoffs": (Cutoff, dict(CUTOFFS)),
    "recipes": (Recipe, dict(RECIPES)),
}

MODULE = '''
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from undermargin import Tracker, identify  # as a package would that also uses us
from undermargin.cutoffs import CUTOFFS, Cutoff
from undermargin.recipes import Fitted, Lesson, Recipe
from undermargin.tracking.scores import SCORES, Score

SEEN_WHILE_LOADING = list(SCORES)


class Lowest:
    """The lowest an epoch ever was."""

    def __init__(self, num_samples, width, device):
        self.tensors = {"lowest": torch.full((num_samples, width), torch.inf, device=device)}

    def observe(self, rows, means, seen, epochs):
        lowest = self.tensors["lowest"][rows]
        lowest.copy_(means.where(seen[:, None], torch.inf).minimum(lowest))

    def follow(self, later, epochs, later_epochs):
        self.tensors["lowest"].copy_(self.tensors["lowest"].minimum(later.tensors["lowest"]))

    def values(self, epochs):
        return self.tensors["lowest"][:, 0]


@dataclass(frozen=True)
class FirstHalf:
    def fit(self, lesson: Lesson) -> Fitted:
        training, _ = lesson.on_part(lesson.rows[: len(lesson.rows) // 2]).train()
        return Fitted(training, notes=("half",))


lowest_margin = Score("margin", Lowest, "lowest margin of an epoch", "nobody")
median = Cutoff(lambda run: float(np.median(run.scores)), "half of all", "nobody")
first_half = Recipe(FirstHalf, "the first half alone", "nobody")
'''
ENTRY_POINTS = """
[undermargin.scores]
lowest_margin = tiny:lowest_margin

[undermargin.cutoffs]
median = tiny:median

[undermargin.recipes]
first_half = tiny:first_half
"""


def install(path, name, module, entry_points):
    """Leave a distribution of one module in a folder."""
    (path / f"{name}.py").write_text(module)
    about = path / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)


def python(path, code):
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning:undermargin", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *sys.path])},
    )


def test_a_tracker_a_cutoff_a_training_and_the_command_line_take_what_a_package_brings(tmp_path):
    install(tmp_path, "tiny", MODULE, ENTRY_POINTS)
    result = python(
        tmp_path,
        """
        import sys
        import numpy as np
        from undermargin import Tracker, cli, identify, recipes
        print("tiny" in sys.modules)  # not before a table is read

        tracker = Tracker(2, scores=("aum", "lowest_margin"))
        for logits in ([[3.0, 0.0], [1.0, 0.0]], [[-2.0, 0.0], [2.0, 0.0]]):
            tracker.update(logits, labels=[0, 0], indices=[0, 1])
            tracker.end_epoch()
        print(tracker.scores("lowest_margin"), identify(tracker.run(score="lowest_margin"), "median").flagged)

        x, y = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
        fitted = recipes.fit((x, y), recipe="first_half", budget=recipes.Budget(epochs=1, batch_size=8))
        print(fitted.notes, len(fitted.training.rows))
        print("aum" in sys.modules["tiny"].SEEN_WHILE_LOADING)

        sys.argv = ["undermargin", "methods"]
        cli.main()
        """,
    )
    lines = result.stdout.splitlines()
    assert lines[:4] == ["False", "[-2.  1.] [0]", "('half',) 20", "True"], result.stderr
    for name in ("lowest_margin", "median", "first_half"):
        assert any(name in line for line in lines[4:])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("row = 1 / 0", r"cannot be loaded \(ZeroDivisionError: division by zero\)"),
        ("raise SystemExit('no license')", r"cannot be loaded \(SystemExit: no license\)"),
        ("", r"cannot be loaded \(AttributeError"),
        ("row = 3", "is of type int, expected (Score|Cutoff|Recipe)"),
    ],
)
def test_what_cannot_be_used_is_a_warning_that_names_the_package(family, module, reason, tmp_path, monkeypatch):
    package = f"broken_{family}"
    install(tmp_path, package, module, f"[undermargin.{family}]\nmine = {package}:row\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package, raising=False)
    kind, ours = FAMILIES[family]
    table = Table(f"undermargin.{family}", kind, ours)
    with pytest.warns(UndermarginWarning, match=f"'mine' from package {package}.*{reason}") as warned:
        assert list(table) == list(ours)
    assert len(warned) == 1
    assert "mine" not in table  # and no second warning


def test_our_names_cannot_be_taken_and_of_two_packages_the_first_keeps_its_name(tmp_path, monkeypatch):
    for number, package in enumerate(("alpha_cutoffs", "beta_cutoffs")):
        row = f"from undermargin.cutoffs import Cutoff\nrow = Cutoff(lambda run: {number}, 'a number', '')"
        names = "\n".join(f"{name} = {package}:row" for name in ("same", "paper"))
        install(tmp_path, package, row, f"[undermargin.cutoffs]\n{names}\n")
    monkeypatch.syspath_prepend(tmp_path)
    table = Table("undermargin.cutoffs", *FAMILIES["cutoffs"])
    with pytest.warns(UndermarginWarning, match="the name is already taken") as warned:
        assert table["same"].find(None) == 0
    assert table["paper"] is CUTOFFS["paper"]
    assert [str(one.message).split(" was not")[0] for one in warned] == [
        "'paper' from package alpha_cutoffs",
        "'paper' from package beta_cutoffs",
        "'same' from package beta_cutoffs",
    ]


def test_a_score_of_a_signal_that_does_not_exist_cannot_be_made():
    with pytest.raises(InputError, match="there is no signal 'entropy'; choose from margin"):
        Score("entropy", SCORES["aum"].reduction, "", "")
