"""undermargin paper, as it is typed."""

import json

import pytest
from typer.testing import CliRunner

from undermargin.cli import app
from undermargin.errors import InputError, UndermarginError
from undermargin.paper import Runner, Store
from undermargin.paper.cell import Cell


@pytest.fixture(autouse=True)
def timed(monkeypatch):
    """Steps are not timed in dry runs: other tests do that."""
    monkeypatch.setattr("undermargin.paper.estimate.samples_per_second", lambda study, batch_size: 1000)


def typed(*words):
    app(["paper", *map(str, words)], standalone_mode=False)


def test_without_matplotlib_a_figure_says_so_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr("undermargin.paper.figures.find_spec", lambda name: None)
    words = ["paper", "figure-trajectories", "--preset", "smoke", "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match=r"figures need matplotlib: pip install 'undermargin\[paper\]'"):
        app(words, standalone_mode=False)
    assert not (tmp_path / "out").exists()


def test_absent_data_sets_are_named_before_anything_is_run_and_failed_cells_as_they_fail(tmp_path, capfd):
    words = ["paper", "table-architectures", "--out", str(tmp_path), "--data", str(tmp_path)]
    with pytest.raises(UndermarginError):
        app(words, standalone_mode=False)
    first, *others = capfd.readouterr().err.splitlines()
    assert first.startswith("cifar10 was not found, 5 cells will fail: get it from https://")
    assert len(others) == 5
    assert all("failed: cifar10 is not" in line for line in others)


def test_a_dry_run_names_absent_data_sets_too_and_runs_nothing(tmp_path, capfd):
    typed("table-architectures", "--out", tmp_path / "out", "--data", tmp_path, "--dry-run")
    shown = capfd.readouterr()
    assert shown.err.startswith("cifar10 was not found, 5 cells will fail")
    assert "0 of 5 cells have been run" in shown.out.splitlines()
    assert not (tmp_path / "out").exists()


def test_a_data_set_that_is_too_small_for_the_preset_is_named_before_anything_is_run(tmp_path, capfd):
    folder = tmp_path / "tiny-imagenet-200"
    (folder / "train/n01/images").mkdir(parents=True)
    (folder / "train/n01/images/n01_0.JPEG").touch()
    typed("table-tiny-imagenet", "--preset", "paper", "--out", tmp_path / "out", "--data", tmp_path, "--dry-run")
    said = capfd.readouterr().err.splitlines()
    assert said == [
        f"tiny-imagenet has 1 training samples in {folder}, 112 cells will fail: they need 95,000; "
        "get all of it from http://cs231n.stanford.edu/tiny-imagenet-200.zip"
    ]


def test_commands_that_are_listed_can_be_copied(capfd):
    typed("list")
    shown = capfd.readouterr().out.splitlines()
    assert "    run undermargin paper figure-precision-recall-asymmetric --preset laptop --data data" in shown


def test_a_dry_run_says_how_long_it_may_take_by_what_was_run(tmp_path, capfd):
    ran = Cell("fit", "laptop", "mnist", "uniform", 0.4, "standard")
    Store(tmp_path).add(ran, {"test_error": 0.1}, {"seconds": 1800})
    typed("table-mnist", "--only", "standard", "--out", tmp_path, "--data", tmp_path, "--dry-run")
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "1 of 21 cells have been run",
        "20 to run take about 10.0 hours one after the other",
    ]
    typed("table-mnist", "--only", "standard", "--out", tmp_path, "--data", tmp_path, "--dry-run", "--json")
    rows = json.loads(capfd.readouterr().out)
    assert {row["expected_seconds"] for row in rows} == {None, 1800}  # None: it has been run


def test_a_recipe_that_does_not_exist_is_an_error_that_names_those_that_do(tmp_path):
    with pytest.raises(InputError, match="no recipe 'Standard'; choose from standard, oracle"):
        typed("table-mnist", "--preset", "smoke", "--only", "aum", "--only", "Standard", "--out", tmp_path)


def test_where_nothing_was_run_it_says_so(tmp_path, capfd):
    typed("table-real", "--no-run", "--out", tmp_path)
    assert "nothing of table-real in preset laptop has been run" in capfd.readouterr().err


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", interrupt)
    found = CliRunner().invoke(app, ["paper", "table-cost", "--preset", "smoke", "--out", str(tmp_path)])
    assert (found.exit_code, found.stderr) == (130, "interrupted; run the same command again to resume\n")
