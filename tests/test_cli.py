import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from undermargin import __version__
from undermargin.cli import app
from undermargin.cutoffs import CUTOFFS
from undermargin.models.table import MODELS
from undermargin.recipes import RECIPES
from undermargin.tracking.scores import SCORES

COMMANDS = ["demo", "scan", "identify", "report", "review", "clean", "export", "retrain", "methods"]


def undermargin(*words):
    return subprocess.run([sys.executable, "-m", "undermargin", *words], capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"    undermargin {command}" in result.output
    assert "--json" in result.output


def test_the_version():
    assert CliRunner().invoke(app, ["--version"]).output.strip() == __version__


def test_methods_lists_every_score_cutoff_recipe_and_model():
    listed = json.loads(CliRunner().invoke(app, ["methods", "--json"]).output)
    assert [row["name"] for row in listed["scores"]] == list(SCORES)
    assert [row["name"] for row in listed["cutoffs"]] == list(CUTOFFS)
    assert [row["name"] for row in listed["recipes"]] == list(RECIPES)
    row = next(row for row in listed["recipes"] if row["name"] == "co_teaching")
    assert (row["paper"], row["needs"], row["num_networks"], row["trainings"]) == (
        "Han et al. 2018",
        ["noise_rate"],
        2,
        "2",
    )
    text = CliRunner().invoke(app, ["methods"]).output
    assert [row["name"].removesuffix("NAME") for row in listed["models"]] == list(MODELS)
    assert all(name in text for name in (*SCORES, *CUTOFFS, *RECIPES, *MODELS))


def test_an_expected_error_is_one_line_and_exit_code_1(tmp_path):
    result = undermargin("identify", str(tmp_path / "missing"))
    assert result.returncode == 1
    assert result.stderr.strip() == f"error: there is no folder {tmp_path / 'missing'}"
    assert result.stdout == ""


def test_wrong_usage_is_exit_code_2():
    assert undermargin("identify").returncode == 2
    assert undermargin("nonsense").returncode == 2


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """A demo through the command line, as a user runs it."""
    out = tmp_path_factory.mktemp("scan") / "demo"
    result = undermargin("demo", "--out", str(out), "--json")
    assert result.returncode == 0, result.stderr
    return out, json.loads(result.stdout)


def test_the_demo_finds_the_flipped_labels(scan):
    _, summary = scan
    found = summary["found"]
    assert found["precision"] >= 0.97
    assert found["recall"] >= 0.96
    assert summary["test_error"]["after"] < summary["test_error"]["before"]


def test_the_demo_leaves_a_scan_folder_and_says_how_it_was_made(scan):
    out, summary = scan
    assert json.loads((out / "summary.json").read_text()) == summary
    config = json.loads((out / "config.json").read_text())
    assert summary["noise"] == {"kind": "uniform", "rate": 0.2, "seed": 0}
    assert {"undermargin", "torch", "numpy", "python"} <= set(config["versions"])
    assert (out / "manifest.json").is_file()


def test_identify_judges_a_scan_again_without_training(scan):
    out, summary = scan
    again = json.loads(undermargin("identify", str(out), "--cutoff", "gaussian", "--json").stdout)
    assert again["cutoff"]["name"] == "gaussian"
    assert again["num_samples"] == summary["num_samples"]
    strict = json.loads(undermargin("identify", str(out), "--percentile", "50", "--json").stdout)
    assert strict["num_flagged"] < summary["num_flagged"]
    by_hand = json.loads(undermargin("identify", str(out), "--cutoff", "-1000", "--json").stdout)
    assert by_hand["num_flagged"] == 0
    known = json.loads(undermargin("identify", str(out), "--cutoff", "rate:0.05", "--json").stdout)
    assert 0 < known["num_flagged"] <= 0.05 * summary["num_samples"]  # both folds must agree
    text = undermargin("identify", str(out), "--cutoff", "probability").stdout
    assert f"{summary['num_flagged']} of {summary['num_samples']}" in text
    assert "look like" in text


def test_report_and_export_of_a_scan(scan, tmp_path):
    out, summary = scan
    page = tmp_path / "page.html"
    assert undermargin("report", str(out), "--out", str(page)).stdout.startswith(f"wrote {page}")
    assert page.read_text().startswith("<!doctype html>")
    data = json.loads(undermargin("report", str(out), "--json", "--samples", "5").stdout)
    assert data["num_samples"] == summary["num_samples"]
    assert len(data["gallery"]["samples"]) == 5
    words = ("export", str(out), "--to", "csv", "--out", str(tmp_path / "v.csv"), "--json")
    assert json.loads(undermargin(*words).stdout) == {"format": "csv", "path": str(tmp_path / "v.csv")}
    assert "already exists" in undermargin(*words).stderr


def test_a_cutoff_that_does_not_exist_is_an_error_that_lists_those_that_do(scan):
    result = undermargin("identify", str(scan[0]), "--cutoff", "papr")
    assert result.returncode == 1
    assert "choose from paper, reference, probability, auto, gaussian" in result.stderr


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999999"])
def test_a_seed_that_no_generator_takes_is_refused_in_a_line(seed):
    result = undermargin("demo", "--seed", seed)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_somebody_elses_digits_are_left_alone(tmp_path):
    (tmp_path / "digits.npz").write_text("junk")
    result = undermargin("demo", "--out", str(tmp_path))
    assert (result.returncode, (tmp_path / "digits.npz").read_text()) == (1, "junk")
    assert "digits.npz is not a demo's; choose another folder with --out" in result.stderr
