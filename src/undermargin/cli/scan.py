"""undermargin scan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from undermargin.procedure import Procedure


def scan(
    source: Annotated[
        Path, typer.Argument(help="Class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The scan's folder.", show_default=False)],
    label: Annotated[str | None, typer.Option(help="The column of labels; guessed when obvious.")] = None,
    text: Annotated[str | None, typer.Option(help="The column of texts; guessed when obvious.")] = None,
    image: Annotated[str | None, typer.Option(help="The column of images; guessed when obvious.")] = None,
    where: Annotated[str | None, typer.Option(help="Only rows with COLUMN=VALUE, such as split=train.")] = None,
    cutoff: Annotated[
        str | None, typer.Option(help="A row of 'undermargin methods', or a number; auto, or the preset's.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="What is trained, see docs/scan.md; chosen.")] = None,
    image_size: Annotated[int | None, typer.Option(min=8, help="Side of the images, in pixels; chosen.")] = None,
    preset: Annotated[
        Literal["default", "paper", "reference"], typer.Option(help="Of the procedure; reference: the authors' code.")
    ] = "default",
    epochs: Annotated[int | None, typer.Option(min=1, help="Exactly so many in each fold; else it stops.")] = None,
    jobs: Annotated[int, typer.Option(min=0, max=2, help="Folds side by side, 1 or 2; 0: chosen.")] = 0,
    precision: Annotated[Literal["no", "bf16", "fp16"], typer.Option(help="Mixed precision of the training.")] = "no",
    memory: Annotated[float | None, typer.Option(min=0, help="GB for images; more of them stay on disk.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the folds and the trainings.")] = 0,
    decisions: Annotated[
        Path | None, typer.Option(help="An earlier scan of the same data whose decisions are trusted.")
    ] = None,
    records: Annotated[bool, typer.Option("--record", help="Keep margins at every epoch, for the report.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Find the samples of a data set whose labels look wrong.

    Trains a small network twice, each time with other threshold samples, and flags whoever is learned no better than
    these. Stopped at any moment and started again with the same words, it goes on where it was. On several GPUs or
    machines: torchrun ... -m undermargin scan ...

    \b
        undermargin scan photos/ --out scans/photos
        undermargin scan reviews.csv --text review --label stars --out scans/reviews
        undermargin scan data.parquet --where split=train --out scans/train
    """
    from undermargin.cli import show
    from undermargin.cli.display import ScanDisplay
    from undermargin.cli.identify import number_or_name
    from undermargin.scans.scan import scan as run_scan
    from undermargin.storage.json import to_json
    from undermargin.tracking import ranks

    display = ScanDisplay(is_quiet=quiet or as_json)
    try:
        with display:
            found = run_scan(
                source,
                out,
                label=label,
                text=text,
                image=image,
                where=where,
                cutoff=None if cutoff is None else number_or_name(cutoff),
                model=model,
                image_size=image_size,
                procedure=_procedure(preset),
                epochs=epochs,
                jobs=jobs,
                precision=precision,
                decisions=decisions,
                records=records,
                memory=None if memory is None else int(memory * 1e9),
                seed=seed,
                on_read=display.read,
                on_start=display.start,
                on_epoch=display.epoch,
            )
    except KeyboardInterrupt:
        typer.echo(f"interrupted; what was trained is in {out}, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    if ranks.rank() > 0:
        return
    if as_json:
        typer.echo(to_json(found.summary))
    elif not quiet:
        show.scan(found)


def _procedure(preset: str) -> "Procedure":
    from undermargin.procedure import Procedure

    return {"default": Procedure.default, "paper": Procedure.paper, "reference": Procedure.reference}[preset]
