"""Everything a reader may copy is executed, and every link leads somewhere."""

import re
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import typer.main

import undermargin
from undermargin import recipes
from undermargin.cli import app
from undermargin.plugins import Table

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CARDS = sorted((DOCS / "methods").glob("*.md"))
FRAMEWORKS = sorted((DOCS / "frameworks").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
WRITTEN = [*PAGES, *FRAMEWORKS, *CARDS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
COMMANDS = typer.main.get_command(app)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    variables = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), variables)
    return variables


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if blocks(page)], ids=name)
def test_the_python_on_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    run(page, tmp_path, monkeypatch)


def test_both_examples_of_the_readme_find_the_mislabeled_points(tmp_path, monkeypatch):
    variables = run(ROOT / "README.md", tmp_path, monkeypatch)
    for verdicts in (variables["found"].verdicts, variables["verdicts"]):
        assert verdicts.is_flagged[:30].mean() >= 0.9
        assert verdicts.is_flagged[30:].mean() < 0.1


@pytest.mark.parametrize("page", FRAMEWORKS, ids=name)
def test_the_python_on_a_framework_page_is_one_of_the_examples(page):
    """The examples themselves are run by the tests of the adapters."""
    examples = {path.read_text() for path in (ROOT / "examples").glob("*.py")}
    assert set(blocks(page)) <= examples


def test_the_recipe_that_the_docs_show_is_trained_from_a_package(noisy_blobs, tmp_path, monkeypatch):
    page = DOCS / "extending.md"
    (code,), (settings,) = blocks(page), blocks(page, "toml")
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
    result = subprocess.run([sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def without_code(page):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page):
    return re.findall(r"\]\((?!https?://)([^)\s]+)\)", without_code(page))


def anchors(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        plain = unicodedata.normalize("NFKC", heading).lower()
        yield re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


@pytest.mark.parametrize("page", [page for page in WRITTEN if links(page)], ids=name)
def test_links_lead_to_files_and_headings_that_exist(page):
    # cards are shown on the page that is made of them
    place = DOCS / "methods.md" if page in CARDS else DOCS / "paper.md" if page.name == "paper-notes.md" else page
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (place.parent / path).resolve() if path else place
        assert target.exists(), link
        if anchor:
            assert anchor in set(anchors(target)), f"{link}: no such heading"


def shown_commands(page):
    """Every command in a block of a page: its name and its options."""
    for block in [*blocks(page, "bash"), *blocks(page, "text")]:
        for command, rest in re.findall(r"(?:^|\s)undermargin (\w+)(.*)", block):
            words = re.split(r"#|\s{3}", rest)[0].split()  # without a comment
            yield command, [word.partition("=")[0] for word in words if word.startswith("--")]


def options(command):
    return {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}


@pytest.mark.parametrize("page", [page for page in WRITTEN if any(shown_commands(page))], ids=name)
def test_the_commands_on_a_page_and_their_options_exist(page):
    context = COMMANDS.make_context("undermargin", [], resilient_parsing=True)
    for shown, asked in shown_commands(page):
        command = COMMANDS.get_command(context, shown)
        assert command is not None, f"undermargin {shown}"
        assert set(asked) <= options(command) | {"--help"}, f"undermargin {shown}"


def test_the_readme_lists_every_command():
    listed = re.findall(r"^\| `undermargin (\w+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert listed == COMMANDS.list_commands(COMMANDS.make_context("undermargin", [], resilient_parsing=True))


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_every_setting_of_a_recipe_names_its_source(card):
    rows = [line.strip("|").split("|") for line in card.read_text().splitlines() if line.startswith("|")]
    for *_, source in rows[2:]:
        assert re.search(r"paper|authors|cleanlab|ours|the same", source), source


def test_every_public_name_is_in_the_api_reference():
    shown = re.findall(r"^::: undermargin\.(\w+)$", (DOCS / "api" / "undermargin.md").read_text(), flags=re.MULTILINE)
    assert sorted(shown) == undermargin.__all__


def test_every_page_is_in_the_navigation_of_the_site():
    text = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES[1:]:
        if page.name != "paper-notes.md":  # part of paper.md
            assert f": {page.name}\n" in text
    for folder in ("api", "frameworks"):
        assert f": {folder}/\n" in text


def test_the_version_is_in_one_place_and_the_changelog_knows_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    is_development = ".dev" in undermargin.__version__
    assert (undermargin.__version__ in headings) != is_development  # a release has a section of its own


def test_every_dependency_is_pinned():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pins = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    pinned = {re.sub(r"[-_.]+", "-", pin).lower() for pin in pins}
    groups = [group for group_name, group in settings["dependency-groups"].items() if group_name != "site"]
    wanted = [*settings["project"]["dependencies"], *(one for group in groups for one in group if isinstance(one, str))]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", one)[0]).lower() for one in wanted}
    assert names <= pinned


GENERATED = [DOCS / page for page in ("cli.md", "paper.md", "scores-and-cutoffs.md")]  # from texts in the code
BRITISH = r"\b\w*(?:labell|colour|neighbour|behaviour|normalis|memoris|minimis|standardis|regularis|grey\b|licence)\w*"
RIDDLES = r"\b(?:whoever|nobody|somebody|by lot|by heart|one a sample)\b"


@pytest.mark.parametrize("page", [page for page in WRITTEN if page not in GENERATED], ids=name)
def test_pages_are_written_in_plain_american_english(page):
    assert not re.findall(BRITISH, without_code(page), flags=re.IGNORECASE)
    assert not re.findall(RIDDLES, without_code(page), flags=re.IGNORECASE)
