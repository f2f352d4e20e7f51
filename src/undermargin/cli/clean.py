"""undermargin clean."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Flagged(StrEnum):
    """What to do with flagged samples that have no decision."""

    drop = "drop"
    relabel = "relabel"
    keep = "keep"


def clean(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    to: Annotated[Path | None, typer.Option(help="Path for the cleaned data; must not exist.")] = None,
    flagged: Annotated[
        Flagged, typer.Option(help="What to do with flagged samples that have no decision.")
    ] = Flagged.drop,
    only_decided: Annotated[
        bool, typer.Option("--only-decided", help="Apply decisions only; the same as --flagged keep.")
    ] = False,
    indices: Annotated[
        Path | None, typer.Option(help="Write index, id and label of the samples that stay to this CSV file.")
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Hard-link images instead of copying; editing one edits both.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Where the data are now, if they were moved.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write the data set without dropped samples and with relabels applied, in the format it came in.

    Decisions made in review come first. Flagged samples without a decision are dropped; --only-decided keeps them.
    The original data are never changed. NAME.manifest.json, beside the result, lists every change and its reason.

    \b
        undermargin clean scans/photos --to photos-clean
        undermargin clean scans/photos --to photos-clean --only-decided
        undermargin clean scans/photos --dry-run
    """
    from undermargin.cli import show_results
    from undermargin.scans.record import Scan
    from undermargin.storage.json import to_json

    if to is None and indices is None and not dry_run:
        raise typer.BadParameter("pass --to PATH for the cleaned data, or --dry-run to see what would change")
    if dry_run:
        to = indices = None
    found = Scan.open(scan).clean(
        to, flagged=flagged.value, only_decided=only_decided, indices=indices, is_linked=link, data=data
    )
    if as_json:
        typer.echo(to_json(found))
    else:
        show_results.cleaning(found)
