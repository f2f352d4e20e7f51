"""The table of recipes, and what a row of it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from undermargin.errors import InputError
from undermargin.recipes.aum import Aum
from undermargin.recipes.bootstrap import Hard, Soft
from undermargin.recipes.co_teaching import CoTeaching
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson
from undermargin.recipes.oracle import Oracle
from undermargin.recipes.random_weighting import RandomWeighting
from undermargin.recipes.standard import Standard


class Method(Protocol):
    """A recipe with its settings: a frozen record."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train as this recipe says."""


@dataclass(frozen=True)
class Recipe:
    """One row of RECIPES."""

    make: Callable[[], Method]  # with the settings of its paper, or of its authors' code where that differs
    description: str
    paper: str
    needs: tuple[str, ...] = ()  # fields of `Known`
    num_networks: int = 1  # trained side by side
    trainings: str = "1"  # the cost, in trainings of one network


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "standard": Recipe(Standard, "cross-entropy on the labels as they are", ""),
        "oracle": Recipe(Oracle, "cross-entropy on the correctly labeled samples alone", "", needs=("is_clean",)),
        "random_weighting": Recipe(RandomWeighting, "weights drawn anew at every step", "Ren et al. 2018"),
        "bootstrap_soft": Recipe(Soft, "labels mixed with predicted probabilities", "Reed et al. 2014"),
        "bootstrap_hard": Recipe(Hard, "labels mixed with predicted classes", "Reed et al. 2014"),
        "co_teaching": Recipe(
            CoTeaching,
            "two networks that choose small-loss samples for each other",
            "Han et al. 2018",
            needs=("noise_rate",),
            num_networks=2,
            trainings="2",
        ),
        "aum": Recipe(Aum, "remove what AUM flags, train again", "Pleiss et al. 2020", trainings="3"),
    }
)


def method_named(name: str) -> Method:
    """A row's method with its defaults."""
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; choose from {', '.join(RECIPES)}")
    return RECIPES[name].make()
