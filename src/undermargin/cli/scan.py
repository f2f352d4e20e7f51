"""undermargin scan."""

from pathlib import Path
from typing import Annotated

import typer


def scan(
    source: Annotated[
        Path, typer.Argument(help="Class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The scan's folder.", show_default=False)],
    label: Annotated[str | None, typer.Option(help="The column of labels; guessed when obvious.")] = None,
    text: Annotated[str | None, typer.Option(help="The column of texts; guessed when obvious.")] = None,
    image: Annotated[str | None, typer.Option(help="The column of images; guessed when obvious.")] = None,
    where: Annotated[str | None, typer.Option(help="Only rows with COLUMN=VALUE, such as split=train.")] = None,
    cutoff: Annotated[str, typer.Option(help="A row of 'undermargin methods', or a number.")] = "auto",
    epochs: Annotated[int | None, typer.Option(min=1, help="In each fold; chosen from the data's size.")] = None,
    seed: Annotated[int, typer.Option(help="Of the folds and the trainings.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Find the samples of a data set whose labels look wrong.

    Trains a small network twice, each time with other threshold samples, and flags whoever is learned no better than
    these. Stopped at any moment and started again with the same words, it goes on where it was.

    \b
        undermargin scan photos/ --out scans/photos
        undermargin scan reviews.csv --text review --label stars --out scans/reviews
        undermargin scan data.parquet --where split=train --out scans/train
    """
    from undermargin.cli import show
    from undermargin.cli.identify import number_or_name
    from undermargin.scan import scan as run_scan

    display = show.ScanDisplay(is_quiet=quiet or as_json)
    with display:
        run_scan(
            source,
            out,
            label=label,
            text=text,
            image=image,
            where=where,
            cutoff=number_or_name(cutoff),
            epochs=epochs,
            seed=seed,
            on_start=display.start,
            on_epoch=display.epoch,
        )
    if as_json:
        typer.echo((out / "summary.json").read_text(), nl=False)
    elif not quiet:
        show.scan(out)
