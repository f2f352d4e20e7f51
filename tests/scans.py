"""Scan folders by hand: what a scan leaves behind, without a training."""

import numpy as np

from undermargin import roots
from undermargin.data.samples import Reading
from undermargin.data.source import load
from undermargin.folder import Folder
from undermargin.verdicts import FLAGGED, KEPT, Verdicts


def make_scan(source, out, *, flagged, **reading):
    """A finished scan of what is at `source`; flagged samples look like the next class, the first one most of all."""
    samples = load(source, Reading(**reading))
    size = len(samples)
    codes = np.full(size, KEPT, np.int8)
    codes[list(flagged)] = FLAGGED
    scores = np.ones(size)
    scores[list(flagged)] = np.linspace(-2, -1, len(flagged))
    suggested = np.where(codes == FLAGGED, (samples.labels + 1) % samples.num_classes, samples.labels)
    verdicts = Verdicts(
        codes=codes,
        scores=scores,
        excess=scores,
        judged_by=np.full(size, 2, np.int16),
        labels=samples.labels,
        ids=samples.ids,
        class_names=samples.class_names,
        suggested_labels=suggested,
        suggestion_confidence=np.full(size, 0.75),
    )
    folder = Folder(out)
    folder.path.mkdir(parents=True)
    folder.write_json(
        "config.json", {"source": samples.found, "kind": samples.kind, "fingerprint": samples.fingerprint()}
    )
    if samples.skipped:
        rows = ["id,reason", *(f"{name},{reason}" for name, reason in samples.skipped)]
        (folder / "skipped.csv").write_text("\n".join(rows))
    folder.save_verdicts(verdicts)
    folder.write_manifest()
    if "path" in samples.found:
        roots.confirm(folder.path, samples.found["path"])
    return folder
