"""The command line. A command parses, calls one library function, prints; nothing heavy is imported before that."""

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
    rich_markup_mode=None,  # plain help is there at once
    pretty_exceptions_enable=False,
)
for command in (demo, scan, identify, report, review, clean, export, retrain, methods, paper):
    app.command()(command)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Find mislabeled training samples by watching a model learn.

    Start with: undermargin demo
    """
    if version:
        from undermargin import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command; an expected error becomes one line, with exit code 1."""
    from undermargin.errors import UndermarginError

    try:
        app()
    except (UndermarginError, OSError) as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(1)
