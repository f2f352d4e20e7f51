"""Data sets: views that add an index or other labels, and the embedded one of the demo."""

from undermargin.data.views import IndexedDataset, RelabeledDataset

__all__ = ["IndexedDataset", "RelabeledDataset"]
