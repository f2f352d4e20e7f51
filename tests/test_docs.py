"""Whatever a reader may copy is executed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_generated_pages_are_up_to_date():
    result = subprocess.run([sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
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
