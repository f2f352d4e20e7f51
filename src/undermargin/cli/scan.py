"""undermargin scan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from undermargin.procedure import Procedure


def scan(
    source: Annotated[
        Path,
        typer.Argument(
            help="Class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy or a Hugging Face folder.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the scan; new, empty, or a scan to resume.", show_default=False)
    ],
    label: Annotated[str | None, typer.Option(help="Column of labels (default: found by looking).")] = None,
    text: Annotated[str | None, typer.Option(help="Column of texts (default: found by looking).")] = None,
    image: Annotated[str | None, typer.Option(help="Column of images (default: found by looking).")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the samples (default: found by looking).")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split to scan, of a source that has several, such as train.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="Scan only rows with COLUMN=VALUE, such as split=train.")] = None,
    cutoff: Annotated[
        str | None,
        typer.Option(help="A cutoff of 'undermargin methods', or a number (default: probability, or the preset's)."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model to train (default: chosen from the data; see docs/scan.md).")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(min=8, help="Side of the images in pixels (default: chosen).")
    ] = None,
    preset: Annotated[
        Literal["default", "paper", "reference"],
        typer.Option(help="Procedure: ours, the paper's, or the one of the authors' code."),
    ] = "default",
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Train exactly this many epochs per fold (default: stop when the ranking settles)."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, max=2, help="Folds to train side by side, 1 or 2; 0 chooses.")] = 0,
    precision: Annotated[
        float | None, typer.Option(min=0, max=1, help="Flag as many samples as keep this expected precision.")
    ] = None,
    budget: Annotated[int | None, typer.Option(min=0, help="Flag this many samples, the most suspicious.")] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="Trainings, each with other threshold samples (default: 2, or 5).")
    ] = None,
    mixed_precision: Annotated[
        Literal["no", "bf16", "fp16"], typer.Option(help="Mixed precision of the training.")
    ] = "no",
    memory: Annotated[
        float | None,
        typer.Option(min=0, help="GB of memory for images; more of them stay on disk (default: half of what is free)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed for folds and training.")] = 0,
    decisions: Annotated[
        Path | None, typer.Option(help="Earlier scan of the same data whose decisions to apply.")
    ] = None,
    records: Annotated[
        bool, typer.Option("--record", help="Keep every margin at every epoch, for the report.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Find the samples of a data set whose labels look wrong.

    Trains a small network twice, each time with other threshold samples: samples that get a label no class has. What
    the network says about their real classes shows how far its predictions can be trusted, and a label is flagged when
    it is more likely wrong than right. Rerun the same command to resume a scan that was stopped. On
    several GPUs or machines: torchrun ... -m undermargin scan ...

    \b
        undermargin scan photos/ --out scans/photos
        undermargin scan reviews.csv --text review --label stars --out scans/reviews
        undermargin scan data.parquet --where split=train --out scans/train
    """
    from undermargin.cli import show
    from undermargin.cli.identify import number_or_name
    from undermargin.scans.scan import scan as run_scan
    from undermargin.storage.json import to_json
    from undermargin.tracking import ranks

    try:
        found = run_scan(
            source,
            out,
            label=label,
            id=id_column,
            split=split,
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
            budget=budget,
            folds=folds,
            mixed_precision=mixed_precision,
            decisions=decisions,
            records=records,
            memory=None if memory is None else int(memory * 1e9),
            seed=seed,
            progress=not (quiet or as_json),
        )
    except KeyboardInterrupt:
        typer.echo(f"interrupted; what was trained is in {out}. Rerun the same command to resume", err=True)
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
