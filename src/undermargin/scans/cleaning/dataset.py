"""A folder of the `datasets` library: the same features, ClassLabel included."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from undermargin.errors import InputError
from undermargin.scans.cleaning.edit import Edit
from undermargin.sources.quiet import no_progress_bars
from undermargin.storage.files import making


def write_dataset(source: Path, target: Path, edit: Edit, label: str) -> None:
    """Write the rows that stay; nothing is cached beside the original."""
    import datasets

    dataset = datasets.load_from_disk(str(source))
    if len(dataset) != len(edit.is_kept):
        raise InputError(f"{source} now has {len(dataset)} rows, the scan saw {len(edit.is_kept)}")
    if np.any(edit.label_from != np.arange(len(edit.label_from))):
        names, feature = dataset.column_names, dataset.features[label]
        labels = dataset.with_format("arrow")[:][label].take(pa.array(edit.label_from)).to_pylist()
        dataset = dataset.remove_columns([label]).add_column(label, labels, feature=feature).select_columns(names)
    with making(target) as partial, no_progress_bars():
        dataset.select(np.flatnonzero(edit.is_kept)).save_to_disk(str(partial))
