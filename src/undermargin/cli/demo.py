"""undermargin demo."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the scan.")] = Path("scans/demo"),
    rate: Annotated[float, typer.Option(min=0, max=0.9, help="Share of labels to flip.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed for flips, folds and training.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Find labels that were flipped on purpose, in about a minute, without a download.

    Takes scikit-learn's digits, flips a share of the training labels, scans them like any other data, and compares
    the flagged samples with the flipped ones.

    \b
        undermargin demo
        undermargin demo --rate 0.4 --out scans/digits40
    """
    from undermargin.cli import show
    from undermargin.demo import demo as run_demo
    from undermargin.demo import num_steps

    with show.progress(num_steps(), "digits") as advance:
        result = run_demo(out, rate=rate, seed=seed, advance=advance)
    if as_json:
        typer.echo((out / "summary.json").read_text(encoding="utf-8"), nl=False)
    else:
        show.demo(result, out)
