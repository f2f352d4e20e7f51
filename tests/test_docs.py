"""Whatever a reader may copy is executed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from undermargin import recipes
from undermargin.plugins import Table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_python_on_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    variables = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), variables)


def test_the_readmes_example_finds_the_mislabeled_points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    variables = {}
    exec(compile(blocks(ROOT / "README.md")[0], "README.md", "exec"), variables)
    flagged = variables["verdicts"].is_flagged
    assert flagged[:30].mean() > 0.9
    assert flagged[30:].mean() < 0.1


def test_the_recipe_that_the_docs_show_is_trained_from_a_package(noisy_blobs, tmp_path, monkeypatch):
    page = ROOT / "docs" / "extending.md"
    (code,) = blocks(page)
    (settings,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "label_smoothing.py").write_text(code)
    about = tmp_path / "smoothing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: smoothing\nVersion: 1.0\n")
    groups = tomllib.loads(settings)["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "\n".join(f"{key} = {value}" for key, value in rows.items()) for group, rows in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    row = Table("undermargin.recipes", recipes.Recipe, {})["label_smoothing"]

    x, y, _ = noisy_blobs
    budget = recipes.Budget(epochs=3, batch_size=32)
    ends = {
        share: recipes.fit((x, y), recipe=method, budget=budget).predict(np.arange(len(y)))
        for share, method in ((0.1, row.make()), (0.0, type(row.make())(share=0.0)))
    }
    standard = recipes.fit((x, y), recipe="standard", budget=budget).predict(np.arange(len(y)))
    np.testing.assert_allclose(ends[0.0], standard, atol=1e-5)
    assert np.abs(ends[0.1] - standard).max() > 0.01


def test_generated_pages_are_up_to_date():
    result = subprocess.run([sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_command_that_the_docs_show_exists():
    from undermargin.cli import app

    names = {command.callback.__name__ for command in app.registered_commands}
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(
            r"undermargin (demo|scan|identify|report|review|clean|export|retrain|methods|paper)\b", page.read_text()
        ):
            assert name in names, f"{page.name} shows undermargin {name}"


@pytest.mark.parametrize("card", sorted((ROOT / "docs" / "methods").glob("*.md")), ids=lambda card: card.stem)
def test_every_setting_of_a_recipe_names_its_source(card):
    rows = [line.strip("|").split("|") for line in card.read_text().splitlines() if line.startswith("|")]
    for *_, source in rows[2:]:
        assert re.search(r"paper|authors|cleanlab|ours|the same", source), source
