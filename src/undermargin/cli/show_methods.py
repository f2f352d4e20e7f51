"""How the terminal shows the tables of methods."""

from typing import Any

from rich.table import Column, Table

from undermargin.cli.show import console


def methods(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of scores or cutoffs."""
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


def models(title: str, rows: list[dict[str, Any]]) -> None:
    """Models, two lines each: too much for the columns of a narrow terminal."""
    console.print(f"[italic]{title}[/]\n")
    for row in rows:
        kinds = [f"{kind} (default)" if kind in row["is_default_for"] else kind for kind in row["kinds"]]
        size = [] if row["num_parameters"] is None else [f"{row['num_parameters']:,} parameters"]
        needs = [rf"needs undermargin\[{row['extra']}]"] if row["extra"] else []
        console.print(f"[bold]{row['name']}[/]  {row['description']}")
        console.print(f"    [dim]{'; '.join([', '.join(kinds), *size, *needs])}[/]")
    console.print()
