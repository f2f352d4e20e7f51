"""A cell: one experiment on one data set with one kind of noise and one seed."""

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
    """What is run. Tables and figures that need the same cell share its result."""

    kind: str  # a row of KINDS
    preset: Preset
    data: str
    noise: Noise = "none"
    rate: float = 0.0
    recipe: str = "aum"
    seed: int = 0
    vary: tuple[tuple[str, Any], ...] = ()  # differences from the study, and options of the kind

    def varied(self, **changes: Any) -> "Cell":
        """This cell with further differences from its study, or with options of its kind."""
        return replace(self, vary=tuple(sorted({**dict(self.vary), **changes}.items())))

    def option(self, name: str, default: Any = None) -> Any:
        """The value of a difference or option."""
        return dict(self.vary).get(name, default)

    @property
    def study(self) -> Study:
        """How this cell is trained, with its differences applied."""
        base = study(self.preset, self.data)
        changes = {name: value for name, value in self.vary if name in Study.__dataclass_fields__}
        budget = {name: value for name, value in self.vary if name in Budget.__dataclass_fields__}
        return replace(base, **changes, budget=replace(base.budget, **budget))

    @property
    def method(self) -> Method:
        """The recipe; in preset paper with the settings that its authors give for this data set, if any."""
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
        """A digest of the settings, which identifies the result."""
        return _digest(self.settings())

    @property
    def folds_key(self) -> str:
        """A digest of what the two folds of AUM depend on; cells with the same digest share these trainings."""
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
