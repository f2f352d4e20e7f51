"""undermargin methods."""

from typing import Annotated, Any

import typer


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """List every score, cutoff and recipe, with its paper and what it needs.

    \b
        undermargin methods
    """
    import json

    from undermargin.cli import show_methods
    from undermargin.cutoffs import CUTOFFS
    from undermargin.recipes.table import RECIPES
    from undermargin.tracking.scores import SCORES

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
    recipes = [
        _row(name, recipe.description, recipe.paper, [(True, need) for need in recipe.needs])
        | {"num_networks": recipe.num_networks, "trainings": recipe.trainings}
        for name, recipe in RECIPES.items()
    ]
    if as_json:
        typer.echo(json.dumps({"scores": scores, "cutoffs": cutoffs, "recipes": recipes}, indent=2))
    else:
        show_methods.methods("Scores: what a tracker computes; low is suspicious", scores)
        show_methods.methods("Cutoffs: where suspicious begins; rate:0.4 if the noise rate is known", cutoffs)
        show_methods.recipes("Recipes: ways to train on noisy labels; cost in trainings of one network", recipes)


def _row(name: str, description: str, paper: str, needs: list[tuple[bool, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "paper": paper,
        "needs": [need for is_so, need in needs if is_so],
    }
