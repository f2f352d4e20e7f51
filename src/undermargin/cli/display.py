"""What a scan shows on standard error while it runs."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from undermargin.scans.scan import Outlook
    from undermargin.scans.scan import Progress as ScanProgress

LINES = 10  # of progress for the images and for each fold, where there is no terminal


class ScanDisplay:
    """What a scan shows on standard error while it runs: what was found, then a bar for each fold."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.is_quiet = is_quiet
        self.tenths = 0  # of the images, read and said so
        self.console = Console(stderr=True, highlight=False, quiet=is_quiet)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs, {task.fields[state]}"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=self.console, transient=True, disable=is_quiet)
        self.tasks = [self.bar.add_task("", total=None, state="waiting", visible=False) for _ in range(2)]

    def __enter__(self) -> "ScanDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar.live.is_started:
            self.bar.stop()

    def read(self, done: int, total: int) -> None:
        """Say how many images were read: on one line that is written over; without a terminal, now and then."""
        if self.console.is_terminal:
            self.console.print(f"[dim]reading images: {done:,} of {total:,}[/]", end="\n" if done == total else "\r")
        elif done * LINES // total > self.tenths:
            self.tenths = done * LINES // total
            self.console.print(f"reading images: {done:,} of {total:,}")

    def start(self, outlook: "Outlook") -> None:
        """Say what was found, what will be done and how long it may take."""
        samples, chosen = outlook.samples, outlook.plan
        found = samples.found
        where = f" in {escape(found['path'])}" if "path" in found else ""
        self.console.print(f"[bold]{len(samples):,}[/] samples ({samples.kind}), {samples.num_classes} classes{where}")
        for guess in found.get("guessed", []):
            self.console.print(f"[dim]guessed {escape(guess)}[/]")
        if samples.skipped:
            self.console.print(f"[yellow]{len(samples.skipped)} could not be read[/] and are listed in skipped.csv")
        if found.get("empty_classes"):
            self.console.print(f"[yellow]classes without images:[/] {escape(', '.join(found['empty_classes']))}")
        if outlook.seconds is not None:
            beside = ", both folds side by side" if outlook.jobs > 1 else ""
            self.console.print(
                f"[dim]{escape(chosen.model)}, at most 2 x {chosen.budget.epochs} epochs: up to "
                f"{_duration(outlook.seconds)}{beside}[/]"
            )
        for fold, task in enumerate(self.tasks):
            self.bar.update(task, total=chosen.budget.epochs, description=f"fold {fold}", visible=True)
        if self.console.is_terminal:
            self.bar.start()

    def epoch(self, progress: "ScanProgress") -> None:
        """Move a fold's bar on; where nobody watches, as in a batch job, print a line now and then."""
        state = f"{progress.samples_per_second:,.0f} samples/s, cutoff {progress.cutoff:.2f}"
        total = progress.epoch if progress.is_last else progress.epochs
        self.bar.update(self.tasks[progress.fold], completed=progress.epoch, total=total, state=state)
        every = max(1, progress.epochs // LINES)
        if not self.console.is_terminal and (progress.is_last or progress.epoch % every == 0):
            enough = ", enough" if progress.is_last and progress.epoch < progress.epochs else ""
            self.console.print(f"fold {progress.fold}: epoch {progress.epoch} of {progress.epochs}{enough}, {state}")


def _duration(seconds: float) -> str:
    """In words, as exact as an estimate can be."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
