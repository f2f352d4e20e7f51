"""Whether the data are still what was scanned: nothing is cleaned by verdicts about other data."""

from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.originals import CLASS_FOLDERS, Originals
from undermargin.sources.samples import Reading, encode_labels
from undermargin.sources.source import load
from undermargin.verdicts.record import Verdicts


def check(originals: Originals, verdicts: Verdicts, config: dict[str, Any]) -> None:
    """Compare the fingerprint where no image must be decoded for it, else the labels."""
    source = originals.source
    if originals.kind != "images" or originals.format == "arrays":
        reading = Reading(source.get("label"), source.get("text"), source.get("image"), source.get("where"))
        if load(originals.path, reading).fingerprint() != config["fingerprint"]:
            raise _changed(originals)
    elif originals.format != CLASS_FOLDERS:  # there, files are the samples, and are looked for one by one
        labels, _ = encode_labels(originals.column(source["label"]).to_pylist())
        # numbers may differ where a class occurs in unreadable images only: what must agree is who shares one
        pairs = np.unique(np.stack([labels, np.asarray(verdicts.labels)]), axis=1)
        if any(len(np.unique(side)) != pairs.shape[1] for side in pairs):
            raise _changed(originals)


def _changed(originals: Originals) -> InputError:
    return InputError(f"{originals.path} has changed since the scan; scan it again, or bring the old data back")
