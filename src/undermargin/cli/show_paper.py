"""What `undermargin paper` shows."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from undermargin.cli.show import console


def result(values: list[Any], as_json: bool, shown: Callable[[list[Any]], None]) -> None:
    """Print values as JSON, or as text for people."""
    if as_json:
        console.print_json(json.dumps(values))
    else:
        shown(values)


def datasets(rows: list[dict[str, Any]]) -> None:
    """Which official data sets are found, and where to put the others."""
    for row in rows:
        counts = "".join(f", {number:,} {split}" for split, number in row["counts"].items())
        if row["path"]:
            console.print(f"[bold green]{row['name']}[/]  {escape(row['path'])}{counts}", soft_wrap=True)
        else:
            console.print(f"[bold]{row['name']}[/]  not found")
            console.print(f"    [dim]get it from {escape(row['home'])}[/]", soft_wrap=True)
            console.print(f"    [dim]put it at {escape(row['place'])}[/]", soft_wrap=True)


def experiments(rows: list[dict[str, Any]]) -> None:
    """Every experiment: what the paper claims, what it costs, and how it is run."""
    for row in rows:
        console.print(f"[bold]{row['name']}[/]  {escape(row['title'])}", soft_wrap=True)
        console.print(f"    [dim]claim[/] {escape(row['claim'] or 'not in the paper')}", soft_wrap=True)
        console.print(f"    [dim]cost in preset paper[/] {escape(row['cost'])}", soft_wrap=True)
        console.print(f"    [dim]presets[/] {', '.join(row['presets'])}", soft_wrap=True)
        console.print(f"    [dim]run[/] undermargin paper {row['name']} --preset laptop --data data", soft_wrap=True)


def plan(rows: list[dict[str, Any]]) -> None:
    """Every cell, whether it has been run, and how long the others will take."""
    for row in rows:
        console.print(f"{'[green]done[/]' if row['is_done'] else 'to run'}  {escape(row['cell'])}", soft_wrap=True)
    console.print(f"{sum(row['is_done'] for row in rows)} of {len(rows)} cells have been run")
    expected = [row["expected_seconds"] for row in rows if not row["is_done"]]
    known = [seconds for seconds in expected if seconds is not None]
    if known:
        others = f"; unknown for {len(expected) - len(known)} others" if len(known) < len(expected) else ""
        console.print(f"{len(known)} to run take about {sum(known) / 3600:.1f} hours one after the other{others}")


def cell(done: Any, numbers: dict[str, Any]) -> None:
    """A finished cell, on standard error."""
    error = numbers.get("test_error")
    shown = f"{error:.1%} test error" if isinstance(error, float) else str(error or "done")
    if "failed" in numbers:
        shown = f"failed: {numbers['failed']}"
    elif "diverged" in numbers:
        shown = "Diverged"
    aside(f"{done}: {shown}")


def absent(rows: list[dict[str, Any]], num_cells: Mapping[tuple[str, int | None], int]) -> None:
    """Warn about data sets that are missing or too small, before hours are spent on the others.

    `num_cells` counts the cells to run by data set and number of training samples needed (None: all).
    """
    for row in rows:
        wanted = {number: count for (name, number), count in num_cells.items() if name == row["name"]}
        there = row["counts"].get("train")
        few = {number: count for number, count in wanted.items() if number and there is not None and there < number}
        if row["path"] is None and wanted:
            aside(
                f"{row['name']} was not found, {sum(wanted.values())} cells will fail: "
                f"get it from {row['home']} and put it at {row['place']}"
            )
        elif few:
            aside(
                f"{row['name']} has {there:,} training samples in {row['path']}, {sum(few.values())} cells will fail: "
                f"they need {max(few):,}; get all of it from {row['home']}"
            )


def aside(text: str) -> None:
    """A line on standard error."""
    Console(stderr=True, highlight=False).print(escape(text), soft_wrap=True)


def files(paths: list[str]) -> None:
    """What was written."""
    for path in paths:
        console.print(escape(path), soft_wrap=True)
