"""`scan`: from a data set to a `Scan`, in one call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from undermargin.procedure import Procedure
from undermargin.scans.display import ScanDisplay
from undermargin.scans.folder import Folder
from undermargin.scans.output import check_out
from undermargin.scans.procedure import Hooks, Job, Outlook, run
from undermargin.scans.record import Scan
from undermargin.scans.settings import Settings
from undermargin.sources.samples import OnRead, Reading
from undermargin.tracking import ranks
from undermargin.training.fold import OnEpoch, Progress
from undermargin.training.network import accelerator
from undermargin.training.plan import MakeModel

__all__ = ["Job", "Outlook", "Progress", "scan"]


def scan(
    source: Any,
    out: str | Path,
    *,
    label: str | None = Reading.label,
    id: str | None = Reading.id,  # noqa: A002 - the name of the option
    split: str | None = Reading.split,
    text: str | None = Reading.text,
    image: str | None = Reading.image,
    where: str | None = Reading.where,
    image_size: int | None = Reading.image_size,
    memory: int | None = Reading.memory,
    procedure: Procedure = Settings.procedure,
    cutoff: str | float | None = Settings.cutoff,
    model: str | MakeModel | None = Settings.model,
    epochs: int | None = Settings.epochs,
    seed: int = Settings.seed,
    jobs: int = Settings.jobs,
    precision: float | None = Settings.precision,
    budget: int | None = Settings.budget,
    folds: int | None = Settings.folds,
    mixed_precision: str = "no",
    decisions: str | Path | None = Settings.decisions,
    records: bool = Settings.records,
    train: Callable[[Job], None] | None = None,
    progress: bool | None = None,
    on_read: OnRead = lambda done, total: None,  # noqa: ARG005
    on_start: Callable[[Outlook], None] = lambda outlook: None,  # noqa: ARG005
    on_epoch: OnEpoch = lambda progress: None,  # noqa: ARG005
) -> Scan:
    """Find the samples of a data set whose labels look wrong, and leave a scan's folder in `out`.

    Rerun the same call to resume a scan that was stopped; a finished one is not trained again.

    source: a path (class folders, CSV, TSV, JSON lines, Parquet, .npz, .npy, a Hugging Face folder) or data in memory:
        (inputs, labels), a frame, a table, a data set.
    label, text, image, id: names of columns, where they are not plain.
    split: which split to scan, of a source that has several.
    where: COLUMN=VALUE, to scan these rows only.
    image_size: side of the images in pixels (default: chosen).
    memory: bytes that images may take in memory; more of them stay on disk.
    procedure: the choices of the procedure; `Procedure.paper` is the paper's.
    cutoff: a row of the table of cutoffs, or a number (default: the procedure's own; `probability` for the default).
    model: a name, or a function from a number of outputs to a network (default: chosen from the data).
    epochs: train exactly this many per fold (default: stop when the ranking settles).
    seed: of folds and training.
    jobs: folds to train side by side, 1 or 2 (default 0: chosen).
    precision: flag as many samples as keep this expected precision, instead of all more likely wrong than right.
    budget: flag this many samples, those most likely mislabeled.
    folds: number of trainings, each with other threshold samples (default: 2, or 5 for small tables and texts).
    mixed_precision: of the training: no, bf16 or fp16.
    decisions: an earlier scan of the same data. What people decided there is applied: relabeled samples are trained
        with their new label, dropped ones are left out.
    records: keep every sample's margin at every epoch, four bytes each, for the report.
    train: a training of your own, called with a `Job` for each fold.
    progress: show progress bars on standard error (default: in terminals and notebooks; True: also as lines of text).
    on_read, on_start, on_epoch: functions that are called while images are read, before the training, and after every
        epoch.
    """
    out = Path(out)
    accelerator(mixed_precision)  # from here on, processes that torchrun started know of each other
    is_main = ranks.rank() == 0
    if is_main:
        check_out(out, source)
    with ScanDisplay(is_shown=progress if is_main else False) as display:
        reading = Reading(
            label=label,
            id=id,
            split=split,
            text=text,
            image=image,
            where=where,
            image_size=image_size,
            memory=memory,
            on_read=_both(display.read, on_read) if is_main else _nothing,
        )
        settings = Settings(
            procedure=procedure,
            cutoff=cutoff,
            model=model,
            epochs=epochs,
            seed=seed,
            jobs=jobs,
            precision=precision,
            budget=budget,
            folds=folds,
            mixed_precision=mixed_precision,
            decisions=decisions,
            records=records,
        )
        start = _both(display.start, on_start) if is_main else _nothing
        hooks = Hooks(train, start, _both(display.epoch, on_epoch))
        folder = Folder(out)
        run(source, folder, reading, settings, hooks)
    return Scan(folder)


def _nothing(*_: Any) -> None:
    """For processes other than the first: only one of them reports."""


def _both(first: Callable[..., None], second: Callable[..., None]) -> Callable[..., None]:
    def call(*values: Any) -> None:
        first(*values)
        second(*values)

    return call
