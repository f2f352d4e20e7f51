"""The settings of a tracker: what it computes for how many samples, and which epochs count."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from undermargin.errors import InputError
from undermargin.tracking.scores import check_names


@dataclass(frozen=True)
class Settings:
    """Validated arguments of `Tracker`; two trackers can be merged or resumed only if these are equal."""

    num_samples: int
    scores: Sequence[str]  # a tuple, whatever was given
    skip_epochs: int = 0
    until_epoch: int | None = None
    suggest: int | None = None
    probabilities: int | None = None

    def __post_init__(self) -> None:
        if self.num_samples < 1:
            raise InputError(f"num_samples is {self.num_samples}, expected at least 1")
        if self.skip_epochs < 0 or (self.until_epoch is not None and self.until_epoch <= self.skip_epochs):
            raise InputError(
                f"skip_epochs={self.skip_epochs} and until_epoch={self.until_epoch} leave no epoch to average"
            )
        for name in ("suggest", "probabilities"):
            number = getattr(self, name)
            if number is True or (number is not None and number < 2):
                raise InputError(f"{name}={number} must be the number of classes, such as fold.num_classes")
        set_field = object.__setattr__  # a frozen record may still normalize its fields
        set_field(self, "scores", check_names(self.scores))
        for name, value in vars(self).items():
            if name != "scores" and value is not None:
                set_field(self, name, int(value))  # NumPy's numbers cannot be written as JSON

    @property
    def selects_epochs(self) -> bool:
        """Whether some epochs are left out of the averages."""
        return self.skip_epochs > 0 or self.until_epoch is not None

    def counts(self, epoch: int) -> bool:
        """Whether this epoch is averaged."""
        return epoch >= self.skip_epochs and (self.until_epoch is None or epoch < self.until_epoch)

    def as_dict(self) -> dict[str, Any]:
        """The settings as they are stored in a state."""
        return asdict(self) | {"scores": list(self.scores)}

    def check_saved(self, saved: Mapping[str, Any] | None) -> None:
        """Raise an error unless a state with the settings `saved` can be loaded."""
        if {"probabilities": None, **(saved or {})} != self.as_dict():  # version 0.1 had no probabilities
            raise InputError(f"this state is of a tracker with settings {saved}, expected {self.as_dict()}")
