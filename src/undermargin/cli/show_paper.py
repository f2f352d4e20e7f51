"""What `undermargin paper` shows."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from undermargin.cli.show import console


def result(values: list[Any], as_json: bool, shown: Callable[[list[Any]], None]) -> None:
    """As JSON, or as people read it."""
    if as_json:
        console.print_json(json.dumps(values))
    else:
        shown(values)


def datasets(rows: list[dict[str, Any]]) -> None:
    """Which official data sets are there, and where the others belong."""
    for row in rows:
        counts = "".join(f", {number:,} {split}" for split, number in row["counts"].items())
        if row["path"]:
            console.print(f"[bold green]{row['name']}[/]  {escape(row['path'])}{counts}", soft_wrap=True)
        else:
            console.print(f"[bold]{row['name']}[/]  not there")
            console.print(f"    [dim]get it from {escape(row['home'])}[/]", soft_wrap=True)
            console.print(f"    [dim]put it at {escape(row['place'])}[/]", soft_wrap=True)


def experiments(rows: list[dict[str, str]]) -> None:
    """Every experiment: what the paper claims, and what it costs."""
    for row in rows:
        console.print(f"[bold]{row['name']}[/]  {escape(row['title'])}", soft_wrap=True)
        console.print(f"    [dim]claim[/] {escape(row['claim'] or 'not in the paper')}", soft_wrap=True)
        console.print(f"    [dim]cost in preset paper[/] {escape(row['cost'])}", soft_wrap=True)
        console.print(f"    [dim]run[/] undermargin paper {row['name']} --preset laptop --data data", soft_wrap=True)


def plan(rows: list[dict[str, Any]]) -> None:
    """Every cell, and whether it has been run; how long the others will take, by what such cells took."""
    for row in rows:
        console.print(f"{'[green]done[/]' if row['is_done'] else 'to run'}  {escape(row['cell'])}", soft_wrap=True)
    console.print(f"{sum(row['is_done'] for row in rows)} of {len(rows)} cells have been run")
    expected = [row["expected_seconds"] for row in rows if not row["is_done"]]
    known = [seconds for seconds in expected if seconds is not None]
    if known:
        others = f"; nothing is known of {len(expected) - len(known)} others" if len(known) < len(expected) else ""
        console.print(f"{len(known)} to run take about {sum(known) / 3600:.1f} hours one by one{others}")


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
    """Which data sets are not there or too small, before hours are spent on the others.

    `num_cells`: how many of the cells to run want so many training samples (None: all) of a data set.
    """
    for row in rows:
        wanted = {number: count for (name, number), count in num_cells.items() if name == row["name"]}
        there = row["counts"].get("train")
        few = {number: count for number, count in wanted.items() if number and there is not None and there < number}
        if row["path"] is None and wanted:
            aside(
                f"{row['name']} is not there, {sum(wanted.values())} cells will fail: "
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
