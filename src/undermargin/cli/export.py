"""undermargin export."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            help="Format: csv, parquet, jsonl, label-studio, fiftyone, cleanlab or datasets.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write; for datasets, a folder.", show_default=False)],
    only_flagged: Annotated[bool, typer.Option("--only-flagged", help="Export flagged samples only.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write verdicts and decisions in the format of another tool.

    \b
        undermargin export scans/photos --to label-studio --only-flagged --out tasks.json
        undermargin export scans/reviews --to csv --out reviews-checked.csv
        undermargin export scans/reviews --to datasets --out reviews-checked
    """
    import json

    from undermargin.scans.record import Scan
    from undermargin.scans.terminal import visible

    path = Scan.open(scan).export(to, out, only_flagged=only_flagged, overwrite=overwrite)
    typer.echo(json.dumps({"format": to, "path": str(path)}) if as_json else f"wrote {visible(path)}")
