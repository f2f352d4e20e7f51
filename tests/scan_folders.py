"""Finished scans of tiny data sets, put together by hand: whatever reads a scan's folder can be tried at once."""

import io

import numpy as np
import pandas as pd
from PIL import Image

from undermargin import Run, identify
from undermargin.scans.folder import Folder
from undermargin.sources.samples import Reading
from undermargin.sources.source import load
from undermargin.storage import consent as roots
from undermargin.storage.csv import write_rows
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

COLOURS = ((200, 30, 30), (30, 150, 30), (30, 30, 200))


def make_scan(source, out, *, flagged, **reading):
    """A scan with verdicts by hand: flagged samples look like the next class, the first one most of all."""
    samples = load(source, Reading(**reading))
    size = len(samples)
    codes = np.full(size, KEPT, np.int8)
    codes[list(flagged)] = FLAGGED
    scores = np.ones(size)
    scores[list(flagged)] = np.linspace(-2, -1, len(flagged))
    verdicts = Verdicts(
        codes=codes,
        scores=scores,
        excess=scores,
        judged_by=np.full(size, 2, np.int16),
        labels=samples.labels,
        ids=samples.ids,
        class_names=samples.class_names,
        suggested_labels=np.where(codes == FLAGGED, (samples.labels + 1) % samples.num_classes, samples.labels),
        suggestion_confidence=np.full(size, 0.75),
    )
    folder = _claimed(out, samples)
    if samples.skipped:
        write_rows(folder / "skipped.csv", ("id", "reason"), samples.skipped)
    folder.save_verdicts(verdicts)
    folder.write_manifest()
    return folder


def finish(out, source, wrong=(), **reading):
    """A scan with runs by hand, judged as runs are: these samples score low and look like the next class."""
    samples = load(source, Reading(**reading))
    rng = np.random.default_rng(0)
    num_samples, num_classes = len(samples), samples.num_classes
    is_wrong = np.isin(np.arange(num_samples), wrong)
    folder, runs = _claimed(out, samples), []
    for number in (0, 1):
        is_threshold = (np.arange(num_samples) % 8 == 2 * number + 1) & ~is_wrong
        scores = np.where(is_wrong, -6.0, np.where(is_threshold, -3.0, 3.0)) + rng.uniform(-1, 1, num_samples)
        run = Run(
            scores,
            is_threshold,
            labels=samples.labels,
            ids=samples.ids,
            class_names=samples.class_names,
            suggested_labels=np.where(is_wrong, (samples.labels + 1) % num_classes, -1),
            suggestion_confidence=np.where(is_wrong, 0.75, 0.0),
            fold=number,
        )
        run.save(folder.fold(number) / "scores.parquet")
        runs.append(run)
    folder.save_verdicts(identify(runs), seconds=1.5, samples_per_second=100)
    return folder


def _claimed(out, samples):
    """A folder that says what was asked, and may show its data."""
    folder = Folder(out)
    folder.path.mkdir(parents=True)
    config = {
        "source": samples.found,
        "kind": samples.kind,
        "class_names": samples.class_names,
        "fingerprint": samples.fingerprint(),
        "model": "a network",
        "budget": {"epochs": 5, "drops": ()},
        "procedure": {"percentile": 99.0, "is_strict": False},
        "seed": 0,
        "versions": {"undermargin": "0"},
        "num_threads": 1,
    }
    folder.write_json("config.json", config)
    if "path" in samples.found:
        roots.confirm(folder.path, samples.found["path"])
    return folder


def photos(path, names=("cat", "dog", "eel"), count=20):
    """Class folders of small pictures, one colour a class."""
    for name, colour in zip(names, COLOURS, strict=False):
        (path / name).mkdir(parents=True)
        for number in range(count):
            data = io.BytesIO()
            Image.new("RGB", (40, 30), colour).save(data, "PNG")
            (path / name / f"{number:02d}.png").write_bytes(data.getvalue())
    return path


def texts(path, names=("good", "<script>alert(1)</script>"), count=30):
    """A file of texts with hostile names and words in it."""
    rows = [
        {
            "text": f"<b>text</b> number {number} & more",
            "label": name,
            "age": number,
            "city": ["Rome", "Oslo"][number % 2],
        }
        for name in names
        for number in range(count)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path
