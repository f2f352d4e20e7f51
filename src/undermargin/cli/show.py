"""What the terminal shows of a scan: results on standard output, progress on standard error."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from undermargin.scans.terminal import shown

if TYPE_CHECKING:
    from undermargin.demo import Demo
    from undermargin.scans.record import Scan

console = Console(highlight=False)
MOST_CONFUSIONS = 5
MOST_CLASSES = 20
MOST_SUSPICIOUS = 10
NUM_DRAWN = 4
SHADES = " ░▒▓█"


@contextmanager
def progress(total: int, title: str, unit: str = "epochs") -> Iterator[Callable[[str], None]]:
    """A progress bar that advances with every call and shows the stage."""
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda stage: bar.update(task, advance=1, description=stage)


def demo(result: "Demo", out: Path) -> None:
    """What the demo found, and what to type next."""
    verdicts, found = result.verdicts, result.found
    console.print(
        f"\n[bold]{result.num_flipped} of {len(verdicts)}[/] training labels were flipped on purpose; "
        "undermargin was not told which.\n"
    )
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("flagged", f"[bold]{len(verdicts.flagged)}[/] samples ({found['flagged_share']:.1%})")
    if result.num_flipped:
        table.add_row(
            "found", f"[bold green]{result.num_found}[/] of {result.num_flipped} flips (recall {found['recall']:.3f})"
        )
        table.add_row("right", f"[bold]{found['precision']:.1%}[/] of the flags (precision {found['precision']:.3f})")
        table.add_row("ranking", f"average precision {found['average_precision']:.3f}, MCC {found['mcc']:.3f}")
    table.add_row(
        "test error",
        f"{result.error_before:.1%} trained on all labels, [bold green]{result.error_after:.1%}[/] without the flagged",
    )
    console.print(table)
    _most_suspicious(result)
    _notes(verdicts.about["notes"])
    console.print(f"[dim]{result.seconds:.0f} s; everything is in {shown(out)}[/]", soft_wrap=True)
    _next(out)


def _most_suspicious(result: "Demo") -> None:
    """The most suspicious digits, drawn, with their label and what they look like."""
    verdicts = result.verdicts
    if verdicts.labels is None or verdicts.suggested_labels is None or not len(verdicts.flagged):
        return
    worst = verdicts.flagged[:NUM_DRAWN]
    table = Table(title="Most suspicious", title_justify="left", show_header=False, box=None, padding=(0, 4, 0, 0))
    table.add_row(*(_drawn(result.images[index, :, :, 0] / 255) for index in worst))
    for text, labels in (("label", verdicts.labels), ("looks like", verdicts.suggested_labels)):
        names = (shown(verdicts.name(int(labels[index]))) if labels[index] >= 0 else "no other" for index in worst)
        table.add_row(*(f"[dim]{text}[/] {name}" for name in names))
    console.print()
    console.print(table)
    console.print()


def _drawn(image: Any) -> str:
    """An image in shades, two characters per pixel."""
    return "\n".join("".join(SHADES[int(pixel * (len(SHADES) - 1))] * 2 for pixel in row) for row in image)


def scan(found: "Scan") -> None:
    """A finished scan's summary, its most suspicious samples, and what to type next."""
    out = found.path
    summary(found.summary, out)
    verdicts = found.verdicts
    rows = verdicts.to_arrow().slice(0, MOST_SUSPICIOUS).to_pylist()
    rows = [row for row in rows if row["verdict"] == "flagged"]
    if rows:
        table = Table("id", "label", "suggested", "score", title="Most suspicious", title_justify="left", box=None)
        for row in rows:
            table.add_row(
                *(shown(row[name] or "") for name in ("id", "label", "suggested_label")), f"{row['score']:.2f}"
            )
        console.print()
        console.print(table)
    _next(out)


def summary(found: dict[str, Any], folder: Path) -> None:
    """A scan's summary."""
    share = found["flagged_share"] or 0
    console.print(f"\n[bold]{found['num_flagged']} of {found['num_samples']}[/] labels look wrong ({share:.1%})")
    if found.get("estimated_mislabeled"):
        estimate = found["estimated_mislabeled"]
        console.print(
            f"about {estimate['number']} are wrong, with 90 % confidence {estimate['low']} to {estimate['high']}"
        )
    cutoff = found["cutoff"]
    if cutoff["values"]:
        console.print(f"[dim]flagged: {_rule(cutoff['values'])}[/]")
    console.print(f"[dim]cutoff {shown(cutoff['name'])}: {shown(cutoff['description'])}[/]")
    if "reason" in cutoff:
        console.print(f"[dim]{shown(cutoff['reason'])}[/]")
    _notes(found["notes"])
    if found.get("num_decided"):
        console.print(f"[dim]{found['num_decided']} samples follow decisions made in review[/]")
    if found.get("seconds"):
        epochs = " + ".join(map(str, found["epochs"])) + " epochs, " if "epochs" in found else ""
        saved = f" ({found['saved_epochs']} saved: the ranking had settled)" if found.get("saved_epochs") else ""
        speed = f", {found['samples_per_second']:,} samples/s" if "samples_per_second" in found else ""
        console.print(f"[dim]{epochs}{found['seconds']:.0f} s{speed}{saved}[/]")
    if found["classes"]:
        table = Table("label", "samples", "flagged", "share", box=None, title="Classes", title_justify="left")
        worst = sorted(found["classes"], key=lambda row: -(row["flagged_share"] or 0))
        for row in worst[:MOST_CLASSES]:
            cells = (
                shown(row["label"]),
                str(row["num_samples"]),
                str(row["num_flagged"]),
                f"{row['flagged_share'] or 0:.1%}",
            )
            table.add_row(*cells)
        console.print()
        console.print(table)
    if found["confusions"]:
        console.print("\nStrongest confusions")
        for row in found["confusions"][:MOST_CONFUSIONS]:
            label, suggested = shown(row["label"]), shown(row["suggested_label"])
            console.print(f"  {row['num_samples']} labeled {label} look like {suggested}")
    console.print(f"\n[dim]every sample, most suspicious first: {shown(folder / 'verdicts.csv')}[/]", soft_wrap=True)


def _rule(values: Sequence[Any]) -> str:
    """Which scores are flagged, in words: a cutoff per fold, each a number or one per class."""
    if any(isinstance(value, list) for value in values):
        return "samples at or below the cutoff of their class, in every fold that judged them"
    told = " and ".join(f"{value:.3g} in fold {fold}" for fold, value in enumerate(values) if value is not None)
    return f"samples that scored at or below {told}, in every fold that judged them"


def _notes(notes: list[str]) -> None:
    for note in notes:
        console.print(f"[yellow]note:[/] {shown(note)}")


def _next(out: Path) -> None:
    word = path_word(out)
    next_steps(
        [
            (f"undermargin review {word}", "look at the flagged samples and decide, with the keyboard"),
            (f"undermargin report {word}", "one page with numbers and samples"),
            (f"undermargin clean {word} --dry-run", "what the cleaned data would be"),
            (f"undermargin identify {word} --cutoff paper", "other verdicts, without training"),
        ]
    )


def next_steps(steps: Sequence[tuple[str, str]]) -> None:
    """Commands to type next. Each has a line of its own that is never broken, so that it can be copied whole."""
    console.print("\n[bold]Next[/]")
    for command, meaning in steps:
        console.print(f"  [dim]{meaning}:[/]")
        console.print(f"    {shown(command)}", soft_wrap=True)


def path_word(path: Path) -> str:
    """A path as it is typed into a shell."""
    return shlex.quote(str(path))
