"""The table of recipes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Protocol

from undermargin.cutoffs import Cutoff
from undermargin.errors import InputError
from undermargin.plugins import Table
from undermargin.recipes.aum import Aum
from undermargin.recipes.bootstrap import Hard, Soft
from undermargin.recipes.co_teaching import CoTeaching
from undermargin.recipes.confident_learning import ConfidentLearning
from undermargin.recipes.ctrl import Ctrl
from undermargin.recipes.d2l import D2l
from undermargin.recipes.data_parameters import DataParameters
from undermargin.recipes.dy_bootstrap import DyBootstrap
from undermargin.recipes.fine import Fine
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.incv import Incv
from undermargin.recipes.l_dmi import LDmi
from undermargin.recipes.lesson import Lesson
from undermargin.recipes.mentornet import DATA_DRIVEN, MentorNet
from undermargin.recipes.oracle import Oracle
from undermargin.recipes.random_weighting import RandomWeighting
from undermargin.recipes.second_split_forgetting import SecondSplitForgetting
from undermargin.recipes.simifeat import SimiFeat
from undermargin.recipes.standard import Standard


class Method(Protocol):
    """A recipe with its settings: a frozen dataclass with a `fit` method."""

    def fit(self, lesson: Lesson) -> Fitted:
        """Train on the lesson's samples and return the result."""


@dataclass(frozen=True)
class Recipe:
    """One row of RECIPES."""

    make: Callable[[], Method]  # with the settings of the paper, or of the authors' code where they differ
    description: str
    paper: str
    needs: tuple[str, ...] = ()  # required fields of `Known`
    num_networks: int = 1  # trained together
    trainings: str = "1"  # cost, in trainings of one network


RECIPES: Mapping[str, Recipe] = Table(
    "undermargin.recipes",
    Recipe,
    {
        "standard": Recipe(Standard, "cross-entropy on the given labels", ""),
        "oracle": Recipe(Oracle, "cross-entropy on the correctly labeled samples only", "", needs=("is_clean",)),
        "random_weighting": Recipe(RandomWeighting, "random sample weights at every step", "Ren et al. 2018"),
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
        "mentornet": Recipe(
            MentorNet,
            "weights from a small network trained on a fixed curriculum",
            "Jiang et al. 2018",
            needs=("noise_rate",),
        ),
        "mentornet_dd": Recipe(
            lambda: DATA_DRIVEN,
            "weights from a small network trained on trusted samples",
            "Jiang et al. 2018",
            needs=("trusted", "true_labels"),
            trainings="1 + share of trusted samples",
        ),
        "d2l": Recipe(D2l, "labels mixed with predictions once memorization begins", "Ma et al. 2018"),
        "l_dmi": Recipe(
            LDmi, "a loss that class-dependent noise changes only by a constant", "Xu et al. 2019", trainings="1.8"
        ),
        "data_parameters": Recipe(DataParameters, "a learned temperature per sample", "Saxena et al. 2019"),
        "dy_bootstrap": Recipe(
            DyBootstrap,
            "labels mixed with predicted classes, weighted by a beta mixture fitted to the losses",
            "Arazo et al. 2019",
            trainings="1.7",
        ),
        "dy_bootstrap_gmm": Recipe(
            partial(DyBootstrap, mixture="gaussian"),
            "as dy_bootstrap, with a Gaussian mixture",
            "Arazo et al. 2019",
            trainings="1.7",
        ),
        "incv": Recipe(
            Incv,
            "co-teaching on samples whose labels cross-validation confirms",
            "Chen et al. 2019",
            needs=("pattern",),
            num_networks=2,
            trainings="3.5",
        ),
        "confident_learning": Recipe(
            ConfidentLearning, "remove what cleanlab flags, then retrain", "Northcutt et al. 2021", trainings="5"
        ),
        "ctrl": Recipe(
            Ctrl, "remove the clusters with the largest loss curves, then retrain", "Yue and Jha 2022", trainings="2"
        ),
        "aum": Recipe(Aum, "remove what AUM flags, then retrain", "Pleiss et al. 2020", trainings="3"),
        "second_split_forgetting": Recipe(
            SecondSplitForgetting,
            "remove what is soon forgotten when training continues on other samples",
            "Maini et al. 2022",
            trainings="3",
        ),
        "fine": Recipe(
            Fine, "remove what is not aligned with the features of its class", "Kim et al. 2021", trainings="1.3"
        ),
        "simifeat": Recipe(
            SimiFeat,
            "remove the estimated number of wrong labels per class, ranked by the neighbors' labels",
            "Zhu et al. 2022",
            trainings="1, or 1.3 if features must be learned",
        ),
        "simifeat_vote": Recipe(
            partial(SimiFeat, variant="vote"),
            "remove samples whose neighbors mostly have another label",
            "Zhu et al. 2022",
            trainings="1, or 1.3 if features must be learned",
        ),
    },
)


def method_named(name: str) -> Method:
    """The method of a row, with its default settings."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; choose from {', '.join(RECIPES)}")
    return RECIPES[name].make()


def described(method: Method) -> str:
    """A method and its settings as a string that is the same in every process."""
    kind: Any = type(method)
    settings = fields(kind) if is_dataclass(kind) else ()
    words = [f"{field.name}={_word(getattr(method, field.name))}" for field in settings]
    return f"{kind.__qualname__}({', '.join(words)})"


def _word(value: object) -> str:
    return repr(value.description) if isinstance(value, Cutoff) else repr(value)
