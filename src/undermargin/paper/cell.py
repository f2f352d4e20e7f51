"""One thing to be run: a data set, its noise, what is done with it, and a seed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from undermargin.paper.study import IMPLIED, STUDIES, Preset, Study, study
from undermargin.recipes.d2l import D2l
from undermargin.recipes.data_parameters import JOINT
from undermargin.recipes.random_weighting import RandomWeightingByEpoch
from undermargin.recipes.table import Method, described, method_named
from undermargin.training.engine import Budget

Noise = Literal["uniform", "asymmetric", "none"]

# settings that differ from a recipe's defaults: from the paper's text, or from the code of the recipe's authors
AUTHORS: Mapping[tuple[str, str, str], Method] = MappingProxyType(
    {
        **{("paper", data, "random_weighting"): RandomWeightingByEpoch() for data in STUDIES["paper"]},
        ("paper", "cifar100", "d2l"): D2l(earliest=60 / 200),
        ("paper", "imagenet", "data_parameters"): JOINT,
    }
)


@dataclass(frozen=True)
class Cell:
    """What is run, in plain words; two experiments that ask for the same cell share its result."""

    kind: str  # a row of KINDS
    preset: Preset
    data: str
    noise: Noise = "none"
    rate: float = 0.0
    recipe: str = "aum"
    seed: int = 0
    vary: tuple[tuple[str, Any], ...] = ()  # what differs from the study, or what the kind must be told

    def varied(self, **changes: Any) -> "Cell":
        """The same with these differences from the study as well."""
        return replace(self, vary=tuple(sorted({**dict(self.vary), **changes}.items())))

    def option(self, name: str, default: Any = None) -> Any:
        """One of the differences."""
        return dict(self.vary).get(name, default)

    @property
    def study(self) -> Study:
        """How this cell is trained, its differences applied."""
        base = study(self.preset, self.data)
        changes = {name: value for name, value in self.vary if name in Study.__dataclass_fields__}
        budget = {name: value for name, value in self.vary if name in Budget.__dataclass_fields__}
        return replace(base, **changes, budget=replace(base.budget, **budget))

    @property
    def method(self) -> Method:
        """The recipe; at the paper's size with its authors' settings for this data set, where they name any."""
        return AUTHORS.get((self.preset, self.data, self.recipe)) or method_named(self.recipe)

    def settings(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON values; a changed preset is another cell."""
        left_out = [name for name, value in IMPLIED.items() if getattr(self.study, name) == value]
        study = {name: value for name, value in asdict(self.study).items() if name not in ("num_trials", *left_out)}
        words = {
            **asdict(self),
            "vary": dict(self.vary),
            "method": described(self.method),
            "study": study,
        }
        return dict(json.loads(json.dumps(words)))

    @property
    def key(self) -> str:
        """A short name of the settings."""
        return _digest(self.settings())

    @property
    def folds_key(self) -> str:
        """A short name of what the two folds of AUM depend on: cells that share it share those trainings."""
        words = self.settings()
        study = {name: value for name, value in words["study"].items() if name != "num_test"}
        named = [words[name] for name in ("preset", "data", "noise", "rate", "seed")]
        return _digest([*named, study, self.option("is_whole", False)])

    def __str__(self) -> str:
        noise = "as it is" if self.noise == "none" else f"{self.noise} {self.rate:.0%}"
        vary = "".join(f", {name} {value}" for name, value in self.vary)
        return f"{self.kind} {self.recipe} on {self.data}, {noise}, seed {self.seed}{vary}"


def _digest(words: Any) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:16]
