"""What the terminal shows: results on standard output, progress on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

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
    """A bar that moves on with every call and says at what stage it is."""
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
    """The demo's findings, and what to type next."""
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
    console.print(f"[dim]{result.seconds:.0f} s; everything is in {out}[/]\n")
    _next(out)


def _most_suspicious(result: "Demo") -> None:
    """The worst offenders, drawn: what was flagged and what it looks like."""
    verdicts = result.verdicts
    if verdicts.labels is None or verdicts.suggested_labels is None or not len(verdicts.flagged):
        return
    worst = verdicts.flagged[:NUM_DRAWN]
    table = Table(title="Most suspicious", title_justify="left", show_header=False, box=None, padding=(0, 4, 0, 0))
    table.add_row(*(_drawn(result.images[index, :, :, 0] / 255) for index in worst))
    for text, labels in (("label", verdicts.labels), ("looks like", verdicts.suggested_labels)):
        names = (verdicts.name(int(labels[index])) if labels[index] >= 0 else "no other" for index in worst)
        table.add_row(*(f"[dim]{text}[/] {name}" for name in names))
    console.print()
    console.print(table)
    console.print()


def _drawn(image: Any) -> str:
    """An image in shades, two characters a pixel."""
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
                *(escape(row[name] or "") for name in ("id", "label", "suggested_label")), f"{row['score']:.2f}"
            )
        console.print()
        console.print(table)
    console.print()
    _next(out)


def summary(found: dict[str, Any], folder: Path) -> None:
    """A scan's summary."""
    share = found["flagged_share"] or 0
    console.print(f"\n[bold]{found['num_flagged']} of {found['num_samples']}[/] labels look wrong ({share:.1%})")
    cutoff = found["cutoff"]
    values = ", ".join(f"{value:.3g}" if isinstance(value, float) else "one a class" for value in cutoff["values"])
    console.print(f"[dim]cutoff {escape(cutoff['name'])} ({escape(cutoff['description'])}): {values}[/]")
    if "reason" in cutoff:
        console.print(f"[dim]{escape(cutoff['reason'])}[/]")
    _notes(found["notes"])
    if found.get("num_decided"):
        console.print(f"[dim]{found['num_decided']} samples follow decisions made in review[/]")
    if found.get("seconds"):
        epochs = " + ".join(map(str, found["epochs"])) + " epochs, " if "epochs" in found else ""
        saved = f" ({found['saved_epochs']} saved: the ranking had settled)" if found.get("saved_epochs") else ""
        console.print(f"[dim]{epochs}{found['seconds']:.0f} s, {found['samples_per_second']:,} samples/s{saved}[/]")
    if found["classes"]:
        table = Table("label", "samples", "flagged", "share", box=None, title="Classes", title_justify="left")
        worst = sorted(found["classes"], key=lambda row: -(row["flagged_share"] or 0))
        for row in worst[:MOST_CLASSES]:
            cells = (
                escape(row["label"]),
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
            label, suggested = escape(row["label"]), escape(row["suggested_label"])
            console.print(f"  {row['num_samples']} labelled {label} look like {suggested}")
    console.print(f"\n[dim]written to {escape(str(folder / 'verdicts.csv'))}[/]")


def retrained(result: dict[str, Any]) -> None:
    """Test errors before and after cleaning, and what to make of them."""
    seeds = len(result["errors"]["standard"])
    table = Table("trained on", "test error", *(f"seed {seed}" for seed in range(seeds)), box=None)
    names = {"standard": "all samples", "cleaned": "the cleaned ones", "random": "as many, by lot"}
    for variant, name in names.items():
        errors = [f"{error:.2%}" for error in result["errors"][variant]]
        table.add_row(name, f"[bold]{result['means'][variant]:.2%}[/]", *errors)
    console.print(table)
    console.print()
    for other, name in (("standard", "all samples"), ("random", "removal by lot")):
        found = result["differences"][f"cleaned - {other}"]
        interval = "" if found["low"] is None else f" (95 % interval {found['low']:+.2%} to {found['high']:+.2%})"
        console.print(f"cleaned against {name}: [bold]{found['mean']:+.2%}[/]{interval}")
    if result["is_test_noisy"]:
        console.print(
            "[yellow]note:[/] the held-out labels are as noisy as the others: compare, do not trust the level"
        )


def review_address(address: str, host: str) -> None:
    """Where the page is; on standard error, since it is no result."""
    to_user = Console(stderr=True, highlight=False, soft_wrap=True)
    to_user.print(f"\n[bold]{escape(address)}[/]")
    if host not in ("127.0.0.1", "localhost", "::1"):
        to_user.print("[yellow]note:[/] others can reach this address, and nothing on the way is encrypted")
    to_user.print("[dim]Decisions are saved as they are made. Stop with Ctrl-C.[/]\n")


def review_progress(found: dict[str, Any], folder: Path) -> None:
    """How far a review has come, and what to type next."""
    text = f"{found['num_decided']} of {found['num_flagged']} flagged samples are decided"
    if found["precision"] is not None:
        low, high = found["interval"]
        text += f"; {found['precision']:.0%} of these labels were wrong (95 %: {low:.0%} to {high:.0%})"
    console.print(text)
    console.print(f"[dim]next:[/] undermargin clean {escape(str(folder))} --to CLEANED")


def cleaning(found: dict[str, Any]) -> None:
    """What was cleaned, and in which classes."""
    console.print(
        f"\n[bold]{found['num_after']} of {found['num_before']}[/] samples stay: {found['num_dropped']} "
        f"{'were' if found['written'] else 'are'} dropped, {found['num_relabeled']} relabeled\n"
    )
    names = ("label", "before", "dropped", "relabeled", "gained", "after")
    table = Table(*names, box=None, title="Classes", title_justify="left")
    for row in sorted(found["classes"], key=lambda row: row["num_after"] - row["num_before"])[:MOST_CLASSES]:
        table.add_row(escape(row["label"]), *(str(row[f"num_{name}"]) for name in names[1:]))
    console.print(table)
    if found["num_without_suggestion"]:
        console.print(
            f"\n[yellow]note:[/] {found['num_without_suggestion']} of the dropped samples look like no other class, so "
            "there was no label to give them"
        )
    if found["shrinking"]:
        names_lost = escape(", ".join(found["shrinking"]))
        console.print(f"\n[yellow]warning:[/] more than half of the samples leave these classes: {names_lost}")
    for path in found["written"]:
        console.print(f"[dim]written to {escape(path)}[/]")


def _notes(notes: list[str]) -> None:
    for note in notes:
        console.print(f"[yellow]note:[/] {escape(note)}")


def methods(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of methods."""
    heads = (Column("name", no_wrap=True), "what it is", "paper", "needs")
    table = Table(*heads, title=title, title_justify="left", box=None)
    for row in rows:
        table.add_row(f"[bold]{row['name']}[/]", row["description"], row["paper"], ", ".join(row["needs"]))
    console.print(table)
    console.print()


def recipes(title: str, rows: list[dict[str, Any]]) -> None:
    """Recipes, two lines each: too much for the columns of a narrow terminal."""
    console.print(f"[italic]{title}[/]\n")
    for row in rows:
        needs = [f"needs to know: {', '.join(row['needs'])}"] if row["needs"] else []
        networks = [f"{row['num_networks']} networks"] if row["num_networks"] > 1 else []
        about = "; ".join([*([row["paper"]] if row["paper"] else []), *networks, f"cost {row['trainings']}", *needs])
        console.print(f"[bold]{row['name']}[/]  {row['description']}")
        console.print(f"    [dim]{about}[/]")
    console.print()


def _next(out: Path) -> None:
    table = Table(title="Next", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(f"undermargin review {out}", "[dim]look at them and decide, with the keyboard[/]")
    table.add_row(f"undermargin clean {out} --dry-run", "[dim]what the cleaned data would be[/]")
    table.add_row(f"undermargin identify {out} --cutoff gaussian", "[dim]other verdicts, no training[/]")
    table.add_row(f"undermargin report {out}", "[dim]a page to look at[/]")
    table.add_row(f"less {out / 'verdicts.csv'}", "[dim]every sample, most suspicious first[/]")
    table.add_row("undermargin methods", "[dim]every score, cutoff and recipe[/]")
    console.print(table)
