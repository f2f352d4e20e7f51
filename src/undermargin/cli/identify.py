"""undermargin identify."""

from pathlib import Path
from typing import Annotated

import typer


def identify(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    cutoff: Annotated[
        str | None,
        typer.Option(
            help="A cutoff of 'undermargin methods', rate:0.4 for a known share of wrong labels, or a number.",
            show_default="the scan's own",
        ),
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(min=0, max=100, help="Percentile of the threshold samples, instead of 99.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(min=0, max=1, help="Flag as many samples as keep this expected precision.")
    ] = None,
    budget: Annotated[int | None, typer.Option(min=0, help="Flag this many samples, the most suspicious.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Judge the samples of a scan again, without training.

    \b
        undermargin identify scans/demo --cutoff paper
        undermargin identify scans/demo --cutoff gaussian
        undermargin identify scans/demo --percentile 95
        undermargin identify scans/demo --cutoff rate:0.2
        undermargin identify scans/demo --budget 100
    """
    from undermargin.cli import show
    from undermargin.scans.record import Scan
    from undermargin.storage.json import to_json

    opened = Scan.open(scan)
    name = None if cutoff is None else number_or_name(cutoff)
    opened.identify(name, percentile=percentile, precision=precision, budget=budget)
    if as_json:
        typer.echo(to_json(opened.summary))
    else:
        show.summary(opened.summary, opened.path)


def number_or_name(cutoff: str) -> str | float:
    """A cutoff as typed: a number if it is one, else a name."""
    try:
        return float(cutoff)
    except ValueError:
        return cutoff
