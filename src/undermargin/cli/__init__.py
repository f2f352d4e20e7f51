"""The command line. A command parses, makes one library call and prints; heavy imports wait until then."""

import sys

import typer

from undermargin.cli.clean import clean
from undermargin.cli.demo import demo
from undermargin.cli.export import export
from undermargin.cli.identify import identify
from undermargin.cli.methods import methods
from undermargin.cli.paper import paper
from undermargin.cli.report import report
from undermargin.cli.retrain import retrain
from undermargin.cli.review import review
from undermargin.cli.scan import scan

app = typer.Typer(
    name="undermargin",
    help="Find mislabeled training samples by watching a model learn.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help appears at once
    pretty_exceptions_enable=False,
)
for command in (demo, scan, identify, report, review, clean, export, retrain, methods, paper):
    app.command()(command)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Find mislabeled training samples by watching a model learn.

    Start with: undermargin demo
    """
    if version:
        from undermargin import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command; an expected error becomes one line on standard error, with exit code 1."""
    from undermargin.errors import UndermarginError

    try:
        app()
    except (UndermarginError, OSError) as error:
        typer.echo(f"error: {error_line(error)}", err=True)
        sys.exit(1)


def error_line(error: Exception) -> str:
    """An error in one line: without the number of a system error, and safe for terminals."""
    from undermargin.scans.terminal import visible

    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return visible(" ".join(text.split()))
