"""undermargin clean."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Flagged(StrEnum):
    """What becomes of flagged samples that nobody decided."""

    drop = "drop"
    relabel = "relabel"
    keep = "keep"


def clean(
    scan: Annotated[Path, typer.Argument(help="A scan's folder.", show_default=False)],
    to: Annotated[Path | None, typer.Option(help="Where the cleaned data go; must not be there yet.")] = None,
    flagged: Annotated[
        Flagged, typer.Option(help="What becomes of flagged samples without a decision.")
    ] = Flagged.drop,
    indices: Annotated[Path | None, typer.Option(help="Write index, id and label of what stays, as CSV.")] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Link images instead of copying; editing one edits both.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Where the data are now, if they were moved.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write the data set without dropped samples and with relabels applied, in the format it came in.

    Decisions of a review come first; flagged samples without one are dropped (see --flagged). The original is never
    touched. Beside the result, NAME.manifest.json lists every change and why it was made.

    \b
        undermargin clean scans/photos --to photos-clean
        undermargin clean scans/reviews --to reviews-clean.csv --flagged keep
        undermargin clean scans/photos --dry-run
    """
    from undermargin.cli import show
    from undermargin.scans.record import Scan
    from undermargin.storage.json import to_json

    if to is None and indices is None and not dry_run:
        raise typer.BadParameter("say where the cleaned data go with --to PATH, or only look with --dry-run")
    if dry_run:
        to = indices = None
    found = Scan.open(scan).clean(to, flagged=flagged.value, indices=indices, is_linked=link, data=data)
    if as_json:
        typer.echo(to_json(found))
    else:
        show.cleaning(found)
