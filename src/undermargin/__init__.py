"""Find mislabeled training samples by watching a model learn: the area under the margin."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undermargin.data.views import IndexedDataset, RelabeledDataset
    from undermargin.folds import Fold, Procedure, folds, threshold_samples
    from undermargin.identify import identify
    from undermargin.run import Run
    from undermargin.scan import scan
    from undermargin.tracker import Tracker
    from undermargin.trajectories import Trajectories
    from undermargin.verdicts import Verdicts

__version__ = "0.1.0"

__all__ = [
    "Fold",
    "IndexedDataset",
    "Procedure",
    "RelabeledDataset",
    "Run",
    "Tracker",
    "Trajectories",
    "Verdicts",
    "folds",
    "identify",
    "scan",
    "threshold_samples",
]

# Where each name lives. They are fetched when first used: `import undermargin` is quick and free of torch.
_HOMES = {
    "Fold": "undermargin.folds",
    "IndexedDataset": "undermargin.data.views",
    "Procedure": "undermargin.folds",
    "RelabeledDataset": "undermargin.data.views",
    "Run": "undermargin.run",
    "Tracker": "undermargin.tracker",
    "Trajectories": "undermargin.trajectories",
    "Verdicts": "undermargin.verdicts",
    "folds": "undermargin.folds",
    "identify": "undermargin.identify",
    "scan": "undermargin.scan",
    "threshold_samples": "undermargin.folds",
}


class _Package(ModuleType):
    """Keeps `undermargin.identify` the function when Python binds the module of the same name to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'undermargin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
