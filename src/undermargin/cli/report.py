"""undermargin report."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    scan: Annotated[Path, typer.Argument(help="A scan's folder.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The page.", show_default="SCAN/report.html")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Also the flagged share by this column; repeatable.")] = None,
    samples: Annotated[int, typer.Option(min=0, max=5000, help="How many flagged samples to show.")] = 200,
    thumbnails: Annotated[
        bool, typer.Option("--thumbnails/--no-thumbnails", help="Show the samples: pictures, texts, rows.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as data; write no page.")] = False,
) -> None:
    """Make one page about a scan, for reading and for passing on.

    The page is a single file that needs no network: how the scores are spread, the most suspicious samples, the
    flagged share of every class, what is taken for what, and how it was computed.

    \b
        undermargin report scans/photos
        undermargin report scans/adults --by sex --by age
        undermargin report scans/letters --no-thumbnails --out letters.html
    """
    from undermargin.scans.record import Scan
    from undermargin.storage.json import to_json

    opened = Scan.open(scan)
    if as_json:
        typer.echo(to_json(opened.describe(by=by or (), num_samples=samples, has_thumbnails=thumbnails)))
        return
    path = opened.report(out, by=by or (), num_samples=samples, has_thumbnails=thumbnails)
    typer.echo(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
