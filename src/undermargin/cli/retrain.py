"""undermargin retrain."""

from pathlib import Path
from typing import Annotated

import typer


def retrain(
    scan: Annotated[Path, typer.Argument(help="A scan's folder.", show_default=False)],
    test: Annotated[Path | None, typer.Option(help="A test set of the same kind.")] = None,
    test_where: Annotated[str | None, typer.Option(help="Only its rows with COLUMN=VALUE.")] = None,
    holdout: Annotated[float | None, typer.Option(help="Without a test set: a share of the data to hold out.")] = None,
    model: Annotated[str | None, typer.Option(help="Train another one than the scan did.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings of each.")] = 3,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of each training; chosen from the data's size.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train before and after cleaning, and compare the test errors.

    Three classifiers a seed, with the same number of iterations: on all samples, without the flagged ones (decisions
    made in review come first), and without as many drawn by lot.

    \b
        undermargin retrain scans/photos --test photos-test/
        undermargin retrain scans/reviews --test reviews.csv --test-where split=test
        undermargin retrain scans/photos --holdout 0.2
    """
    from undermargin.cli import show
    from undermargin.scans.record import Scan
    from undermargin.storage.json import to_json

    with show.progress(3 * seeds, "training", unit="trainings") as advance:
        result = Scan.open(scan).retrain(
            test,
            test_where=test_where,
            holdout=holdout,
            model=model,
            seeds=seeds,
            epochs=epochs,
            on_training=lambda variant, seed: advance(f"{variant}, seed {seed}"),
        )
    if as_json:
        typer.echo(to_json(result))
    else:
        show.retrained(result)
