"""Find mislabeled training samples by watching a model learn: the area under the margin."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undermargin.procedure import Fold, Procedure, folds, threshold_samples
    from undermargin.scans.record import Scan
    from undermargin.scans.scan import scan
    from undermargin.sources.views import IndexedDataset, RelabeledDataset
    from undermargin.tracking.run import Run
    from undermargin.tracking.tracker import Tracker
    from undermargin.tracking.trajectories import Trajectories
    from undermargin.verdicts.identify import identify
    from undermargin.verdicts.record import Verdicts

__version__ = "0.2.0.dev0"

__all__ = [
    "Fold",
    "IndexedDataset",
    "Procedure",
    "RelabeledDataset",
    "Run",
    "Scan",
    "Tracker",
    "Trajectories",
    "Verdicts",
    "folds",
    "identify",
    "scan",
    "threshold_samples",
]

# Where each name is defined. Names are imported when first used, so `import undermargin` is fast and needs no torch.
_MODULES = {
    "Fold": "procedure",
    "IndexedDataset": "sources.views",
    "Procedure": "procedure",
    "RelabeledDataset": "sources.views",
    "Run": "tracking.run",
    "Scan": "scans.record",
    "Tracker": "tracking.tracker",
    "Trajectories": "tracking.trajectories",
    "Verdicts": "verdicts.record",
    "folds": "procedure",
    "identify": "verdicts.identify",
    "scan": "scans.scan",
    "threshold_samples": "procedure",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'undermargin' has no attribute {name!r}")
    return getattr(import_module(f"undermargin.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
