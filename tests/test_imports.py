"""What starting costs, and what must not be loaded by it."""

import subprocess
import sys

import pytest

import undermargin

TORCH_BLOCKED = """
import sys
sys.modules["torch"] = None  # importing it now raises
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_importing_the_package_and_its_command_line_loads_neither_torch_nor_numpy():
    result = python(
        "import undermargin, undermargin.cli, sys; print([m for m in ('torch', 'numpy', 'rich') if m in sys.modules])"
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_no_other_command_loads_the_recipes():
    result = python(
        "import undermargin.cli.show, undermargin.demo, undermargin.scans.scan, undermargin.scans.retraining\n"
        "import undermargin.report, sys; print('undermargin.recipes' in sys.modules)"
    )
    assert result.stdout.strip() == "False", result.stderr


def test_everything_after_the_scores_works_without_torch(tmp_path):
    code = (
        TORCH_BLOCKED
        + f"""
from undermargin import Run, Verdicts, folds, identify, threshold_samples
import undermargin.scans.cleaning, undermargin.scans.decisions, undermargin.review.app, undermargin.review.sheet
import undermargin.cli, undermargin.scans.folder, undermargin.verdicts.metrics, undermargin.noise
import undermargin.tracking.trajectories
import undermargin.sources.official, undermargin.export, undermargin.report
verdicts = identify(Run([1.0, -1.0, 0.0], [False, False, True]))
verdicts.save({str(tmp_path / "v.parquet")!r})
print(Verdicts.load({str(tmp_path / "v.parquet")!r})[1])
"""
    )
    result = python(code)
    assert result.stdout.strip() == "flagged", result.stderr


@pytest.mark.parametrize("first", ["undermargin.verdicts.identify", "undermargin.procedure", "undermargin"])
def test_the_functions_are_not_hidden_by_the_modules_of_the_same_name(first):
    result = python(
        f"import {first}; from undermargin import folds, identify; print(callable(folds), callable(identify))"
    )
    assert result.stdout.strip() == "True True", result.stderr


def test_the_public_names_are_sorted_exist_and_are_all_there_is():
    assert undermargin.__all__ == sorted(undermargin.__all__)
    assert dir(undermargin) == undermargin.__all__
    for name in undermargin.__all__:
        assert getattr(undermargin, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = undermargin.nonsense
