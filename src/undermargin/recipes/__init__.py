"""Recipes: methods for training on noisy labels, behind one function.

A recipe changes the loss, the weights, the labels or the selection of samples. All recipes use the same training loop,
and a tracker observes every one of them.

    fitted = recipes.fit(train, recipe="co_teaching", known=Known(noise_rate=0.4), test=test)
    fitted.test_error(), fitted.scores["aum"], fitted.verdicts
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import FolderError, InputError
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Known, Lesson, OnEpoch
from undermargin.recipes.table import RECIPES, Method, Recipe, described, method_named
from undermargin.sources.joined import join
from undermargin.sources.source import load
from undermargin.storage.files import replacing
from undermargin.tracking import ranks
from undermargin.tracking.scores import check_names
from undermargin.training.engine import Budget
from undermargin.training.network import NetworkPlan
from undermargin.training.plan import MakeModel, plan

__all__ = ["RECIPES", "Budget", "Fitted", "Known", "Lesson", "Method", "Recipe", "fit"]

CONFIG = "config.json"


def fit(
    train: Any,
    *,
    recipe: str | Method,
    model: str | MakeModel | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    test: Any = None,
    known: Known | None = None,
    scores: Sequence[str] = ("aum",),
    is_augmented: bool = True,
    folder: str | Path | None = None,
    on_epoch: OnEpoch = lambda stage, epoch, epochs: None,  # noqa: ARG005
) -> Fitted:
    """Train on noisy labels with a recipe.

    Args:
        train: The training set: anything that `scan` accepts, or `Samples`.
        recipe: The name of a row of RECIPES, or a method with settings of your own.
        model: A model name, or a function from the number of outputs to a network (default: chosen from the data).
        budget: Epochs, batch size and optimizer (default: chosen from the training set).
        seed: Random seed for the initial weights, the batch order and the recipe itself.
        test: A test set. It is encoded together with the training set; its labels are used by `test_error` only.
        known: What the recipe may know about the noise, such as the noise rate.
        scores: Names of the scores that the tracker computes.
        is_augmented: Whether images are augmented.
        folder: Directory for checkpoints. The same call resumes an interrupted training.
        on_epoch: Called with the stage, the epoch and the number of epochs after every epoch.

    Returns:
        The classifier, the tracker's scores, and the scores, verdicts or weights of the recipe where it has them.
    """
    method = method_named(recipe) if isinstance(recipe, str) else recipe
    samples = load(train)
    joined = samples if test is None else join(samples, load(test))
    chosen = plan(joined, model=model)
    if not isinstance(chosen, NetworkPlan):
        raise InputError(f"recipes train neural networks, but model is {chosen.model!r}; choose another model")
    if ranks.num_ranks() > 1:
        raise InputError(
            f"recipes train in a single process, but there are {ranks.num_ranks()}; start without torchrun"
        )
    num_samples = len(samples)
    known = known or Known()
    known.check(num_samples)
    lesson = Lesson(
        plan=chosen if is_augmented else replace(chosen, augment=None),
        labels=joined.labels,
        rows=np.arange(num_samples),
        num_classes=samples.num_classes,
        # chosen from the training set only
        budget=budget or (chosen if test is None else plan(samples, model=model)).budget,
        seed=seed,
        known=known,
        scores=check_names(scores),
        folder=None if folder is None else Path(folder),
        on_epoch=on_epoch,
    )
    if lesson.folder is not None:
        _claim(
            lesson.folder,
            {
                "recipe": described(method),
                "known": known.digest(),
                "data": joined.fingerprint(),
                "seed": seed,
                **_about(lesson),
            },
        )
    return replace(method.fit(lesson), test_rows=np.arange(num_samples, len(joined)))


def _about(lesson: Lesson) -> dict[str, Any]:
    return {
        "model": lesson.plan.model,
        "budget": asdict(lesson.budget),
        "is_augmented": lesson.plan.augment is not None,
        "scores": list(lesson.scores),
    }


def _claim(folder: Path, asked: dict[str, Any]) -> None:
    """Record the settings in the folder, or raise `FolderError` if it has checkpoints of a different training."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG
    asked = json.loads(json.dumps(asked))
    if not path.is_file():
        with replacing(path) as partial:
            partial.write_text(json.dumps(asked, indent=2))
        return
    before = json.loads(path.read_text())
    changed = [name for name in asked if asked[name] != before.get(name)]
    if changed:
        raise FolderError(
            f"{folder} was made with different settings: {', '.join(changed)}; choose another folder or delete it"
        )
