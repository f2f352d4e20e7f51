"""undermargin identify."""

from pathlib import Path
from typing import Annotated

import typer


def identify(
    scan: Annotated[Path, typer.Argument(help="A scan's folder.", show_default=False)],
    cutoff: Annotated[
        str,
        typer.Option(help="A row of 'undermargin methods', rate:0.4 for a known share of wrong labels, or a number."),
    ] = "paper",
    percentile: Annotated[
        float | None, typer.Option(min=0, max=100, help="Of the threshold samples, instead of 99.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Judge a scan's samples again with another cutoff, without training.

    \b
        undermargin identify scans/demo --cutoff gaussian
        undermargin identify scans/demo --percentile 95
        undermargin identify scans/demo --cutoff rate:0.2
    """
    from undermargin.cli import show
    from undermargin.scans.folder import Folder
    from undermargin.scans.trust import dropped_by, overruled
    from undermargin.storage.json import to_json
    from undermargin.verdicts.identify import identify as judge

    folder = Folder.open(scan)
    with folder.locked():
        trusted = folder.trusted()
        judged = judge(folder.runs(), number_or_name(cutoff), percentile=percentile, left_out=dropped_by(trusted))
        verdicts = overruled(judged, trusted, folder.verdicts().labels) if trusted else judged
        summary = folder.save_verdicts(verdicts)
        folder.write_manifest()
    if as_json:
        typer.echo(to_json(summary))
    else:
        show.summary(summary, folder.path)


def number_or_name(cutoff: str) -> str | float:
    """A cutoff as typed: a number if it is one, else a name."""
    try:
        return float(cutoff)
    except ValueError:
        return cutoff
