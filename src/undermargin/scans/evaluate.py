"""Does cleaning help? Test error of classifiers trained on all samples, without the flagged, and without as many
drawn by lot, each with the same number of iterations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from undermargin.errors import FolderError, InputError
from undermargin.scans.effects import Decided, effects
from undermargin.scans.folder import Folder
from undermargin.sources.joined import join
from undermargin.sources.samples import Reading, Samples
from undermargin.sources.source import load
from undermargin.training.engine import Plan
from undermargin.training.plan import MakeModel, plan, stored_model
from undermargin.training.retrain import retrain
from undermargin.verdicts import metrics
from undermargin.verdicts.record import Verdicts

DROPS = (0.5, 0.75)  # of the epochs: where the learning rate falls, as in the paper's retraining
CONFIDENCE = 0.95
RESULT = "retrain.json"

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Training rows with the labels to train on, before and after cleaning; test rows with theirs."""

    train: Rows
    cleaned: Rows
    labels: Rows  # (samples,) as the data set has them
    cleaned_labels: Rows  # (samples,) with relabels applied
    test: Rows

    def variants(self, seed: int) -> dict[str, tuple[Rows, Rows]]:
        """Rows and labels of every variant."""
        lot = np.random.default_rng(seed).permutation(self.train)[: len(self.cleaned)]
        return {
            "standard": (self.train, self.labels),
            "cleaned": (self.cleaned, self.cleaned_labels),
            "random": (np.sort(lot), self.labels),
        }


def evaluate(
    scan: str | Path,
    *,
    test: str | Path | None = None,
    test_where: str | None = None,
    holdout: float | None = None,
    model: str | MakeModel | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    on_training: Callable[[str, int], None] = lambda variant, seed: None,  # noqa: ARG005
) -> dict[str, Any]:
    """Test errors by variant and seed, and paired differences with an interval; also left in the scan's folder.

    What is trained is what the scan trained, unless another `model` is named. `test` is a data set of the same kind;
    or `holdout` is a share of the scanned one to set aside, whose labels are as noisy as the others: then differences
    mean more than the errors themselves.
    """
    if (test is None) == (holdout is None):
        raise InputError("name a test set, or a share of the data to hold out: one of the two")
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, expected 1 or more")
    folder = Folder.open(scan)
    with folder.locked():  # now, not after hours of training
        return _evaluate(folder, test, test_where, holdout, model or _model(folder), seeds, epochs, on_training)


def _evaluate(
    folder: Folder,
    test: str | Path | None,
    test_where: str | None,
    holdout: float | None,
    model: str | MakeModel | None,
    seeds: int,
    epochs: int | None,
    on_training: Callable[[str, int], None],
) -> dict[str, Any]:
    verdicts, decided = folder.verdicts(), folder.decided()
    samples = _scanned(folder)
    joined = samples if test is None else join(samples, _test_set(test, test_where, folder))
    chosen = plan(joined, model=model)
    errors: dict[str, list[float]] = {"standard": [], "cleaned": [], "random": []}
    for seed in range(seeds):
        split = _split(joined, verdicts, decided, holdout, seed)
        for variant, (rows, labels) in split.variants(seed).items():
            on_training(variant, seed)
            errors[variant].append(_error(chosen, joined, rows, labels, split, epochs or chosen.budget.epochs, seed))
    result = {"model": chosen.model} | _result(errors, verdicts, decided, is_noisy=test is None)
    folder.write_json(RESULT, result)
    return result


def _model(folder: Folder) -> str | None:
    """The name of what the scan trained; None: chosen from the data."""
    config = folder.read_json("config.json")
    if config.get("is_own_model"):
        raise InputError(
            f"{folder.path} is a scan with {config['model']}, which is not in the folder; name a model with --model, "
            "or pass your own to evaluate(model=...)"
        )
    return stored_model(config)


def _scanned(folder: Folder) -> Samples:
    """The data set as the scan saw it."""
    config = folder.read_json("config.json")
    source = config["source"]
    if "path" not in source:
        raise FolderError(f"{folder.path} is a scan of data in memory; there is no file to train on again")
    folder.check_data(Path(source["path"]))
    samples = load(source["path"], _reading(source, source.get("where")))
    if samples.fingerprint() != config["fingerprint"]:
        raise FolderError(f"{source['path']} has changed since it was scanned; scan it again")
    return samples


def _test_set(path: str | Path, where: str | None, folder: Folder) -> Samples:
    return load(path, replace(_reading(folder.read_json("config.json")["source"], where), split=None, id=None))


def _reading(source: Mapping[str, Any], where: str | None) -> Reading:
    return replace(Reading.of(source), where=where)


def _split(joined: Samples, verdicts: Verdicts, decided: Decided, holdout: float | None, seed: int) -> Split:
    num_scanned = len(verdicts)
    scanned = np.arange(num_scanned)
    changed = effects(decided, joined.labels, joined.class_names)
    is_kept = np.where(changed.is_decided[:num_scanned], ~changed.is_dropped[:num_scanned], ~verdicts.is_flagged)
    if holdout is None:
        is_test, test = np.zeros(num_scanned, bool), np.arange(num_scanned, len(joined))
    else:
        is_test = _drawn(joined.labels, holdout, seed)
        test = scanned[is_test]
        if not len(test):
            raise InputError(f"holding out {holdout} of {num_scanned} samples leaves nothing to test on; hold out more")
    return Split(scanned[~is_test], scanned[is_kept & ~is_test], joined.labels, changed.labels, test)


def _drawn(labels: Rows, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """The same share of every class, by lot: (samples,) bool."""
    if not 0 < share < 1:
        raise InputError(f"the share to hold out is {share}, expected a number between 0 and 1")
    lot = np.random.default_rng(seed).permutation(len(labels))
    is_drawn = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = lot[labels[lot] == label]
        is_drawn[members[: round(share * len(members))]] = True
    return is_drawn


def _error(chosen: Plan, joined: Samples, rows: Rows, labels: Rows, split: Split, epochs: int, seed: int) -> float:
    engine = retrain(
        chosen,
        labels,
        rows,
        num_samples=len(split.train),
        num_classes=joined.num_classes,
        budget=replace(chosen.budget, epochs=epochs, drops=DROPS),
        seed=seed,
    )
    return metrics.error(engine.predict(split.test).argmax(1), split.labels[split.test])


def _result(errors: dict[str, list[float]], verdicts: Verdicts, decided: Decided, *, is_noisy: bool) -> dict[str, Any]:
    return {
        "num_samples": len(verdicts),
        "num_flagged": int(verdicts.is_flagged.sum()),
        "num_decided": len(decided),
        "is_test_noisy": is_noisy,
        "errors": errors,
        "means": {name: float(np.mean(values)) for name, values in errors.items()},
        "differences": {
            f"cleaned - {other}": difference(errors["cleaned"], errors[other]) for other in ("standard", "random")
        },
    }


def difference(first: list[float], second: list[float]) -> dict[str, float | None]:
    """Mean of the paired differences, with Student's interval; one pair alone has none.

    >>> difference([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])["mean"]
    -0.1
    """
    paired = np.subtract(first, second)
    half = None
    if len(paired) > 1:
        deviation = paired.std(ddof=1) / np.sqrt(len(paired))
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(paired) - 1) * deviation)
    mean = round(float(paired.mean()), 6)
    return {
        "mean": mean,
        "low": None if half is None else mean - half,
        "high": None if half is None else mean + half,
    }
