"""undermargin review."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from undermargin.scans.record import Scan


def review(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", show_default="8765, or any that is free")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can connect.")
    ] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address; do not open a browser.")] = False,
    data: Annotated[Path | None, typer.Option(help="Where the data are now, if they were moved.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Show data that were not scanned on this machine.")] = False,
    import_: Annotated[
        Path | None, typer.Option("--import", help="Import decisions from a CSV file; serve no page.")
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Write the decisions to a CSV file; serve no page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Look at the flagged samples and decide: keep, relabel or drop, with the keyboard.

    Serves a page to this machine only. Every decision is on disk before the page shows it as made. On a remote
    machine, forward a port (ssh -L 8765:localhost:8765 HOST) and open the printed address locally.

    \b
        undermargin review scans/photos
        undermargin review scans/photos --no-open --port 9000
        undermargin review scans/photos --export decisions.csv
        undermargin review scans/photos --import decisions.csv
    """
    from undermargin.scans.record import Scan

    opened = Scan.open(scan)
    if import_ is not None or export is not None:
        _exchange(opened, import_, export, as_json=as_json)
    else:
        _serve(opened, host, port, data, is_yes=yes, is_opened=not no_open, as_json=as_json)


def _serve(
    scan: "Scan", host: str, port: int | None, data: Path | None, *, is_yes: bool, is_opened: bool, as_json: bool
) -> None:
    from undermargin.cli import show_results
    from undermargin.storage.json import to_json

    def start(address: str) -> None:
        show_results.review_address(address, host)
        if is_opened:
            import webbrowser

            webbrowser.open(address)

    found = scan.review(
        port, host=host, data=data, confirm=lambda path: is_yes or _ask(scan.path, path), on_start=start
    )
    if as_json:
        typer.echo(to_json(found))
    else:
        show_results.review_progress(found, scan.path)


def _ask(folder: Path, path: Path) -> bool:
    """A folder made on another machine may name any path as its data."""
    if not sys.stdin.isatty():
        return False
    from undermargin.scans.terminal import visible

    typer.echo(
        f"{visible(folder)} was not scanned here. It wants to show data from:\n\n    {visible(path)}\n", err=True
    )
    return typer.confirm("Show it?", err=True)


def _exchange(scan: "Scan", import_: Path | None, export: Path | None, *, as_json: bool) -> None:
    from undermargin.storage.json import to_json

    found: dict[str, int] = {}
    if export is not None and export.exists():
        raise typer.BadParameter(f"{export} already exists; choose another path or delete it")
    if import_ is not None:
        found |= scan.import_decisions(import_)
    if export is not None:
        found |= scan.export_decisions(export)
    if as_json:
        typer.echo(to_json(found))
        return
    if import_ is not None:
        typer.echo(f"imported {found['num_imported']} decisions, {found['num_replaced']} of them replace others")
    if export is not None:
        typer.echo(f"wrote {found['num_exported']} decisions to {export}")
