"""undermargin report."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="HTML file to write.", show_default="SCAN/report.html")] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Also compare flagged shares by this column; repeatable.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=5000, help="Number of flagged samples to show.")] = 200,
    thumbnails: Annotated[
        bool, typer.Option("--thumbnails/--no-thumbnails", help="Show the samples themselves: pictures, texts, rows.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON; write no page.")] = False,
) -> None:
    """Write one HTML page about a scan, to read and to pass on.

    The page is a single file that needs no network. It shows the distribution of the scores, the most suspicious
    samples, the flagged share of every class, which classes are confused, and how everything was computed.

    \b
        undermargin report scans/photos
        undermargin report scans/adults --by sex --by age
        undermargin report scans/letters --no-thumbnails --out letters.html
    """
    from undermargin.scans.record import Scan
    from undermargin.scans.terminal import visible
    from undermargin.storage.json import to_json

    opened = Scan.open(scan)
    if as_json:
        typer.echo(to_json(opened.describe(by=by or (), num_samples=samples, has_thumbnails=thumbnails)))
        return
    path = opened.report(out, by=by or (), num_samples=samples, has_thumbnails=thumbnails)
    typer.echo(f"wrote {visible(path)} ({path.stat().st_size / 1e6:.1f} MB)")
