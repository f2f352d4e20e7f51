"""Writes the parts of the docs that come from the code; with --check, only says whether they are up to date."""

import sys
from pathlib import Path

import typer.main

from undermargin.cli import app
from undermargin.cutoffs import CUTOFFS
from undermargin.scores import SCORES

DOCS = Path(__file__).parent


def cli() -> str:
    """Every command's help."""
    group = typer.main.get_command(app)
    parts = ["# The command line\n\nGenerated from the commands themselves (`make docs`).\n"]
    context = group.make_context("undermargin", [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        help_text = command.get_help(command.make_context(name, [], parent=context, resilient_parsing=True))
        parts.append(f"## undermargin {name}\n\n```text\n{help_text.strip()}\n```\n")
    return "\n".join(parts)


def methods() -> str:
    """The tables of scores and cutoffs."""
    lines = [
        "# Scores and cutoffs",
        "",
        "Generated from the tables in the code (`make docs`). Any score can be paired with any cutoff:",
        "`identify(tracker.run(fold, score=...), cutoff=...)`.",
        "",
        "## Scores: what a tracker watches",
        "",
        "Low means suspicious, for every score but variability, which has no suspicious direction of its own.",
        "",
        "| name | what it is | paper | needs `end_epoch()` |",
        "|---|---|---|---|",
    ]
    for name, score in SCORES.items():
        lines.append(f"| `{name}` | {score.description} | {score.paper} | {'yes' if score.needs_epochs else ''} |")
    lines += [
        "",
        "## Cutoffs: where suspicious begins",
        "",
        "| name | what it is | paper | needs |",
        "|---|---|---|---|",
    ]
    for name, cutoff in CUTOFFS.items():
        needs = ["threshold samples"] * cutoff.needs_threshold + ["labels"] * cutoff.needs_labels
        lines.append(f"| `{name}` | {cutoff.description} | {cutoff.paper} | {', '.join(needs)} |")
    return "\n".join(lines) + "\n"


PAGES = {"cli.md": cli, "scores-and-cutoffs.md": methods}


def main() -> None:
    """Write the pages, or compare them."""
    stale = [name for name, make in PAGES.items() if not _is_current(DOCS / name, make())]
    if "--check" in sys.argv:
        if stale:
            sys.exit(f"out of date: {', '.join(stale)}; run make docs")
        return
    for name in stale:
        (DOCS / name).write_text(PAGES[name]())
        print(f"wrote docs/{name}")


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    main()
