"""Writes the pages, and the parts of pages, that come from the code and from stored results.

With --check it writes nothing and exits with an error if a page is out of date.
"""

import sys
from pathlib import Path

import api_page
import architecture_page
import measured
import paper_page
import quality_page
import recipes_page
import typer.main

from undermargin.cli import app
from undermargin.cutoffs import CUTOFFS
from undermargin.tracking.scores import SCORES

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"


def cli() -> str:
    """docs/cli.md: the help text of every command."""
    group = typer.main.get_command(app)
    parts = ["# Command line\n\nThis page is generated from the commands (`make docs`).\n"]
    context = group.make_context("undermargin", [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        help_text = command.get_help(command.make_context(name, [], parent=context, resilient_parsing=True))
        parts.append(f"## undermargin {name}\n\n```text\n{help_text.strip()}\n```\n")
    return "\n".join(parts)


def methods() -> str:
    """docs/scores-and-cutoffs.md: the tables of scores and cutoffs."""
    lines = [
        "# Scores and cutoffs",
        "",
        "This page is generated from the tables in the code (`make docs`). Every score works with every cutoff:",
        "`identify(tracker.run(fold, score=...), cutoff=...)`.",
        "",
        "## Scores",
        "",
        "A score is one number per sample, computed while the model trains. Low scores are suspicious, except for",
        "`variability`, of which neither end is.",
        "",
        "| name | description | paper | needs `end_epoch()` |",
        "|---|---|---|---|",
    ]
    for name, score in SCORES.items():
        lines.append(f"| `{name}` | {score.description} | {score.paper} | {'yes' if score.needs_epochs else ''} |")
    lines += [
        "",
        "## Cutoffs",
        "",
        "A cutoff turns scores into verdicts: samples with a lower score are flagged.",
        "",
        "| name | description | paper | needs |",
        "|---|---|---|---|",
    ]
    for name, cutoff in CUTOFFS.items():
        needs = ["threshold samples"] * cutoff.needs_threshold + ["labels"] * cutoff.needs_labels
        lines.append(f"| `{name}` | {cutoff.description} | {cutoff.paper} | {', '.join(needs)} |")
    lines += ["", KNOWN_RATES]
    return "\n".join(lines) + "\n"


KNOWN_RATES = """If you know the share of wrong labels, use one of these instead
(`from undermargin.cutoffs import by_rate, by_class_rates`):

| cutoff | description | paper | needs |
|---|---|---|---|
| `by_rate(0.4)`, `"rate:0.4"` | flags this share, lowest scores first (the small-loss rule) | Han et al. 2018 |  |
| `by_class_rates([0.1, 0.4])` | flags the given share of each class, and slightly more | Gui et al. 2021 | labels |

With two folds, each fold flags this share. A sample that only one fold flags is kept, so the final share can be
lower."""


def page(name: str) -> str:
    """A page of the documentation as it is stored."""
    return (DOCS / name).read_text()


PAGES = {
    README: lambda: measured.filled(README.read_text(), measured.readme_tables()),
    DOCS / "quality.md": quality_page.quality,
    DOCS / "scan.md": lambda: measured.filled(page("scan.md"), {"stop": measured.stop()}),
    DOCS / "architecture.md": lambda: measured.filled(page("architecture.md"), architecture_page.tables()),
    DOCS / "cli.md": cli,
    DOCS / "scores-and-cutoffs.md": methods,
    DOCS / "methods.md": recipes_page.page,
    DOCS / "paper.md": paper_page.page,
    **{DOCS / "api" / f"{name}.md": make for name, make in api_page.pages().items()},
}


def main() -> None:
    """Write the pages, or compare them."""
    texts = {path: make() for path, make in PAGES.items()}
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {', '.join(str(path.relative_to(DOCS.parent)) for path in stale)}; run make docs")
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[path])
        print(f"wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
