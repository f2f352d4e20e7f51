"""A scan's folder from runs of the user's own training."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import IdentifyError, InputError
from undermargin.scans.folder import NO_DATA, Folder
from undermargin.scans.judge import judge
from undermargin.scans.settings import OWN_TRAINING, claim, versions
from undermargin.sources.samples import Reading, Samples
from undermargin.sources.source import load
from undermargin.storage import consent
from undermargin.tracking.run import Run


def make(runs: Sequence[Run], source: Any, out: Path, cutoff: str | float, reading: Reading | None) -> Folder:
    """Write runs and verdicts into `out`; data, if given, fill what the runs lack."""
    if not runs:
        raise IdentifyError("there are no runs to judge from")
    samples = None if source is None else load(source, reading)
    runs = [replace(_filled(run, samples), fold=number) for number, run in enumerate(runs)]
    verdicts = judge(runs, cutoff, percentile=None, trusted={})
    folder = Folder(out)
    with folder.locked():
        claim(folder, _config(runs, samples, cutoff))
        if samples is not None and "path" in samples.found:
            consent.confirm(folder.path, samples.found["path"])
        for run in runs:
            run.save(folder.fold(run.fold) / "scores.parquet")
        folder.save_verdicts(verdicts, model=OWN_TRAINING, num_skipped=len(samples.skipped) if samples else 0)
        folder.write_manifest()
    return folder


def _filled(run: Run, samples: Samples | None) -> Run:
    """The run with the labels, ids and class names of the data, after making sure that they agree."""
    if samples is None:
        return run
    if run.num_samples != len(samples):
        raise InputError(f"a run has {run.num_samples} samples, the data set {len(samples)}; expected the same data")
    names = samples.class_names if run.class_names is None else run.class_names
    if run.labels is not None:
        ours = np.array([str(name) for name in samples.class_names])[samples.labels]
        is_number = run.class_names is None
        theirs = samples.labels if is_number else np.array(list(names))[run.labels]
        differing = int((run.labels != theirs).sum() if is_number else (theirs != ours).sum())
        if differing:
            raise InputError(
                f"{differing} of {len(samples)} labels differ between a run and the data set; are they in the same "
                "order, and classes numbered in the same way?"
            )
    if run.ids is not None and samples.ids is not None and list(run.ids) != list(samples.ids):
        raise InputError("the ids of a run and of the data set differ; are they in the same order?")
    return replace(
        run,
        labels=samples.labels if run.labels is None else run.labels,
        ids=samples.ids if run.ids is None else run.ids,
        class_names=names,
    )


def _config(runs: Sequence[Run], samples: Samples | None, cutoff: str | float) -> dict[str, Any]:
    first, digest = runs[0], _digest(runs)
    return {
        "source": {"format": NO_DATA} if samples is None else samples.found,
        "kind": None if samples is None else samples.kind,
        "num_samples": first.num_samples,
        "class_names": first.class_names,
        "model": OWN_TRAINING,
        "is_own_model": True,
        "cutoff": cutoff,
        "num_folds": len(runs),
        "runs": digest,
        "versions": versions(),
        "fingerprint": digest if samples is None else samples.fingerprint(),
        "trusted": {},
    }


def _digest(runs: Sequence[Run]) -> str:
    """A checksum of the runs' numbers and ids."""
    digest = hashlib.sha256()
    for run in runs:
        for values in (run.scores, run.is_threshold, run.labels):
            digest.update(b"-" if values is None else np.ascontiguousarray(values).tobytes())
        digest.update("\0".join(run.ids or ()).encode())
    return digest.hexdigest()[:16]
