"""How the terminal shows what comes after a scan: review, cleaning, retraining."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from undermargin.cli.show import MOST_CLASSES, console, next_steps, path_word
from undermargin.scans.terminal import shown


def retrained(result: dict[str, Any]) -> None:
    """Test errors before and after cleaning, and their differences."""
    seeds = len(result["errors"]["standard"])
    table = Table("trained on", "test error", *(f"seed {seed}" for seed in range(seeds)), box=None)
    names = {
        "standard": "all samples",
        "cleaned": "the cleaned samples",
        "random": "the same number, at random",
    }
    for variant, name in names.items():
        errors = [f"{error:.2%}" for error in result["errors"][variant]]
        table.add_row(name, f"[bold]{result['means'][variant]:.2%}[/]", *errors)
    console.print(table)
    console.print()
    for other, name in (("standard", "all samples"), ("random", "removal at random")):
        found = result["differences"][f"cleaned - {other}"]
        interval = "" if found["low"] is None else f" (95 % interval {found['low']:+.2%} to {found['high']:+.2%})"
        console.print(f"cleaned against {name}: [bold]{found['mean']:+.2%}[/]{interval}")
    if result["is_test_noisy"]:
        console.print(
            "[yellow]note:[/] the held-out labels are as noisy as the others: compare the errors with each other, do "
            "not rely on their level"
        )
    if result.get("num_test_seen"):
        console.print(
            f"[yellow]note:[/] {result['num_test_seen']} of {result['num_test']} test samples are also in the training "
            "data"
        )


def review_address(address: str, host: str) -> None:
    """Where the page is; on standard error, since it is not a result."""
    to_user = Console(stderr=True, highlight=False, soft_wrap=True)
    to_user.print(f"\n[bold]{shown(address)}[/]")
    if host not in ("127.0.0.1", "localhost", "::1"):
        to_user.print("[yellow]note:[/] other machines can reach this address, and the connection is not encrypted")
    to_user.print("[dim]Decisions are saved as they are made. Stop with Ctrl-C.[/]\n")


def review_progress(found: dict[str, Any], folder: Path) -> None:
    """How far a review has come, and the two ways to go on."""
    text = f"{found['num_decided']} of {found['num_flagged']} flagged samples are decided"
    if found["precision"] is not None:
        low, high = found["interval"]
        text += f"; {found['precision']:.0%} of these labels were wrong (95 %: {low:.0%} to {high:.0%})"
    console.print(text)
    left = found["num_flagged"] - found["num_decided"]
    command = f"undermargin clean {path_word(folder)} --to CLEANED"
    steps = [(f"{command} --only-decided", "apply the decisions, keep all other samples")]
    if left:
        steps.append((command, f"also drop the {left} flagged samples that were not reviewed"))
    next_steps(steps)


def cleaning(found: dict[str, Any]) -> None:
    """What was cleaned, by whom, and in which classes."""
    console.print(f"\n[bold]{found['num_after']} of {found['num_before']}[/] samples stay")
    table = Table("", "dropped", "relabeled", box=None)
    for name, by in (("decided in review", "decision"), ("flagged, not reviewed", "verdict")):
        table.add_row(name, str(found[f"num_dropped_by_{by}"]), str(found[f"num_relabeled_by_{by}"]))
    console.print(table)
    if found["num_dropped_by_verdict"]:
        console.print("[dim]--only-decided keeps flagged samples that were not reviewed[/]")
    console.print()
    names = ("label", "before", "dropped", "relabeled", "gained", "after")
    classes = Table(*names, box=None, title="Classes", title_justify="left")
    for row in sorted(found["classes"], key=lambda row: row["num_after"] - row["num_before"])[:MOST_CLASSES]:
        classes.add_row(shown(row["label"]), *(str(row[f"num_{name}"]) for name in names[1:]))
    console.print(classes)
    if found["num_without_suggestion"]:
        console.print(
            f"\n[yellow]note:[/] {found['num_without_suggestion']} of the dropped samples resemble no other class, so "
            "there was no label to give them"
        )
    if found["shrinking"]:
        names_lost = shown(", ".join(found["shrinking"]))
        console.print(f"\n[yellow]warning:[/] these classes lose more than half of their samples: {names_lost}")
    for path in found["written"]:
        console.print(f"[dim]written to {shown(path)}[/]", soft_wrap=True)
