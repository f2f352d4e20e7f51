"""What a scan shows on standard error while it runs: what was found, then a bar for each fold."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from undermargin.procedure import NUM_FOLDS
from undermargin.scans.terminal import shown

if TYPE_CHECKING:
    from undermargin.scans.procedure import Outlook
    from undermargin.training.fold import Progress as FoldProgress

LINES = 10  # of text for the images and for each fold, where bars cannot be drawn


class ScanDisplay:
    """Bars in terminals and notebooks, lines of text elsewhere.

    `is_shown`: True shows either, False nothing, None bars only.
    """

    def __init__(self, *, is_shown: bool | None) -> None:
        console = Console(stderr=True, highlight=False)
        # rich updates its bars in a notebook with the help of ipywidgets
        self.has_bars = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
        is_quiet = not (self.has_bars or console.is_jupyter) if is_shown is None else not is_shown
        self.console = Console(stderr=True, highlight=False, quiet=is_quiet)
        self.tenths = 0  # of the images that were reported as read
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs, {task.fields[state]}"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=self.console, transient=True, disable=is_quiet or not self.has_bars)
        self.tasks = [self.bar.add_task("", total=None, state="waiting", visible=False) for _ in range(NUM_FOLDS)]

    def __enter__(self) -> "ScanDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar.live.is_started:
            self.bar.stop()

    def read(self, done: int, total: int) -> None:
        """Show how many images were read: on one line that is overwritten, or a line of text now and then."""
        if self.console.is_terminal:
            self.console.print(f"[dim]reading images: {done:,} of {total:,}[/]", end="\n" if done == total else "\r")
        elif done * LINES // total > self.tenths:
            self.tenths = done * LINES // total
            self.console.print(f"reading images: {done:,} of {total:,}")

    def start(self, outlook: "Outlook") -> None:
        """Show what was found, what will be trained and how long it may take."""
        samples, chosen = outlook.samples, outlook.plan
        found = samples.found
        where = f" in {shown(found['path'])}" if "path" in found else ""
        self.console.print(f"[bold]{len(samples):,}[/] samples ({samples.kind}), {samples.num_classes} classes{where}")
        for guess in found.get("guessed", []):
            self.console.print(f"[dim]guessed {shown(guess)}[/]")
        if samples.skipped:
            self.console.print(f"[yellow]{len(samples.skipped)} could not be read[/] and are listed in skipped.csv")
        if found.get("empty_classes"):
            self.console.print(f"[yellow]classes without images:[/] {shown(', '.join(found['empty_classes']))}")
        if outlook.seconds is not None:
            beside = ", both folds side by side" if outlook.jobs > 1 else ""
            self.console.print(
                f"[dim]{shown(chosen.model)}, at most 2 x {chosen.budget.epochs} epochs: up to "
                f"{_duration(outlook.seconds)}{beside}[/]"
            )
        self.tasks += [
            self.bar.add_task("", total=None, state="waiting", visible=False)
            for _ in range(len(self.tasks), outlook.num_folds)
        ]
        for fold, task in enumerate(self.tasks[: outlook.num_folds]):
            self.bar.update(task, total=chosen.budget.epochs, description=f"fold {fold}", visible=True)
        if self.has_bars:
            self.bar.start()

    def epoch(self, progress: "FoldProgress") -> None:
        """Advance a fold's bar, or print a line now and then, as for a batch job."""
        state = f"{progress.samples_per_second:,.0f} samples/s, cutoff {progress.cutoff:.2f}"
        total = progress.epoch if progress.is_last else progress.epochs
        self.bar.update(self.tasks[progress.fold], completed=progress.epoch, total=total, state=state)
        every = max(1, progress.epochs // LINES)
        if not self.has_bars and (progress.is_last or progress.epoch % every == 0):
            settled = ", the ranking has settled" if progress.is_last and progress.epoch < progress.epochs else ""
            self.console.print(f"fold {progress.fold}: epoch {progress.epoch} of {progress.epochs}{settled}, {state}")


def _duration(seconds: float) -> str:
    """An estimate for reading, with as many digits as it deserves."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
