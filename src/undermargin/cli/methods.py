"""undermargin methods."""

from typing import Annotated, Any

import typer


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """List every score, cutoff, recipe and model, with its paper and what it needs.

    \b
        undermargin methods
    """
    import json

    from undermargin.cli import show_methods as show

    tables = {"scores": _scores(), "cutoffs": _cutoffs(), "recipes": _recipes(), "models": _models()}
    if as_json:
        typer.echo(json.dumps(tables, indent=2))
        return
    show.methods("Scores: what a tracker watches; low is suspicious", tables["scores"])
    show.methods("Cutoffs: where suspicious begins; or rate:0.4, if the noise rate is known", tables["cutoffs"])
    show.recipes("Recipes: ways to train on noisy labels; cost is in trainings of one network", tables["recipes"])
    show.models("Models: what --model takes; parameters are counted with ten classes", tables["models"])


def _scores() -> list[dict[str, Any]]:
    from undermargin.tracking.scores import SCORES

    return [
        _row(name, score.description, score.paper, [(score.needs_epochs, "end_epoch()")])
        for name, score in SCORES.items()
    ]


def _cutoffs() -> list[dict[str, Any]]:
    from undermargin.cutoffs import CUTOFFS

    return [
        _row(
            name,
            cutoff.description,
            cutoff.paper,
            [(cutoff.needs_threshold, "threshold samples"), (cutoff.needs_labels, "labels")],
        )
        for name, cutoff in CUTOFFS.items()
    ]


def _recipes() -> list[dict[str, Any]]:
    from undermargin.recipes.table import RECIPES

    return [
        _row(name, recipe.description, recipe.paper, [(True, need) for need in recipe.needs])
        | {"num_networks": recipe.num_networks, "trainings": recipe.trainings}
        for name, recipe in RECIPES.items()
    ]


def _models() -> list[dict[str, Any]]:
    from undermargin.models.names import default, shown
    from undermargin.models.table import MODELS

    return [
        {
            "name": shown(name),
            "description": model.description,
            "kinds": list(model.kinds),
            "is_default_for": [kind for kind in model.kinds if default(kind) == name],
            "num_parameters": model.num_parameters,
            "extra": model.extra,
        }
        for name, model in MODELS.items()
    ]


def _row(name: str, description: str, paper: str, needs: list[tuple[bool, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "paper": paper,
        "needs": [need for is_so, need in needs if is_so],
    }
