"""undermargin retrain."""

from pathlib import Path
from typing import Annotated

import typer


def retrain(
    scan: Annotated[Path, typer.Argument(help="Folder of the scan.", show_default=False)],
    test: Annotated[Path | None, typer.Option(help="Test set, in any format that scan reads.")] = None,
    test_where: Annotated[str | None, typer.Option(help="Use only rows of the test set with COLUMN=VALUE.")] = None,
    holdout: Annotated[float | None, typer.Option(help="Without a test set: share of the data to hold out.")] = None,
    model: Annotated[str | None, typer.Option(help="Model to train (default: the one that the scan trained).")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of trainings of each kind.")] = 3,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs per training (default: chosen from the size of the data).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train before and after cleaning, and compare the test errors.

    Trains three classifiers per seed, with the same number of iterations: on all samples, without the flagged samples
    (decisions made in review come first), and without the same number of samples chosen at random.

    \b
        undermargin retrain scans/photos --test photos-test/
        undermargin retrain scans/reviews --test reviews.csv --test-where split=test
        undermargin retrain scans/photos --holdout 0.2
    """
    from undermargin.cli import show, show_results
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
        show_results.retrained(result)
