"""undermargin methods."""

from typing import Annotated, Any

import typer


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """List every score and every cutoff, with its paper and what it needs.

    \b
        undermargin methods
    """
    import json

    from undermargin.cli import show
    from undermargin.cutoffs import CUTOFFS
    from undermargin.scores import SCORES

    scores = [
        _row(name, score.description, score.paper, [(score.needs_epochs, "end_epoch()")])
        for name, score in SCORES.items()
    ]
    cutoffs = [
        _row(
            name,
            cutoff.description,
            cutoff.paper,
            [(cutoff.needs_threshold, "threshold samples"), (cutoff.needs_labels, "labels")],
        )
        for name, cutoff in CUTOFFS.items()
    ]
    if as_json:
        typer.echo(json.dumps({"scores": scores, "cutoffs": cutoffs}, indent=2))
    else:
        show.methods("Scores: what a tracker watches; low is suspicious", scores)
        show.methods("Cutoffs: where suspicious begins", cutoffs)


def _row(name: str, description: str, paper: str, needs: list[tuple[bool, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "paper": paper,
        "needs": [need for is_so, need in needs if is_so],
    }
