"""undermargin paper."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

EVERYTHING = "all"
DATASETS = "datasets"
LIST = "list"


def paper(
    name: Annotated[str, typer.Argument(help="An experiment, or: list, datasets, all.")] = LIST,
    preset: Annotated[str, typer.Option(help="Size of the experiments: paper, desktop, laptop or smoke.")] = "laptop",
    data: Annotated[Path, typer.Option(envvar="UNDERMARGIN_DATA", help="Folder of the official data sets.")] = Path(
        "data"
    ),
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures.")] = Path("paper"),
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this recipe or identifier; repeat for several.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of cells to run at the same time.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="Run the cells on a Ray cluster.")] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Show what would be run and how long it takes.")] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only write tables and figures of stored results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Reproduce a table or a figure of the paper.

    \b
        undermargin paper table-cifar-uniform --preset laptop --data data
        undermargin paper datasets --data data
    """
    from undermargin import paper as experiments
    from undermargin.cli import show_paper as show
    from undermargin.errors import InputError, UndermarginError
    from undermargin.paper.store import Store

    if preset not in experiments.PRESETS:
        raise InputError(f"there is no preset {preset!r}; choose from {', '.join(experiments.PRESETS)}")
    if name == DATASETS:
        show.result(_datasets(data), as_json, show.datasets)
        return
    if name == LIST:
        show.result(_experiments(), as_json, show.experiments)
        return
    names = experiments.names(preset) if name == EVERYTHING else [name]
    store = Store(out)
    cells = {one: _filtered(experiments.chosen(one, preset).cells(preset), only) for one in names}
    if name.startswith("figure") and not is_dry:
        experiments.figures.check_library()  # not after hours of training
    if not no_run:
        done = store.results()
        missing = {cell.key: cell.study for some in cells.values() for cell in some if cell.key not in done}
        show.absent(_datasets(data), Counter((one.data, one.num_train) for one in missing.values()))
    if is_dry:
        results = experiments.Results.read(store, preset, data)
        show.result(_plan([cell for some in cells.values() for cell in some], results), as_json, show.plan)
        return
    runner = experiments.Runner(store, data, jobs, ray)
    files, failures = _carried_out(cells, preset, runner, is_run=not no_run)
    if not files and not failures:
        show.aside(f"nothing of {name} in preset {preset} has been run into {out} yet")
    show.result([str(path) for path in files], as_json, show.files)
    if failures:
        raise UndermarginError("; ".join(failures))


def _carried_out(
    cells: dict[str, list[Any]], preset: Any, runner: Any, *, is_run: bool
) -> tuple[list[Path], list[str]]:
    """Run each experiment's cells and write its tables and figures; returns the files and the failures."""
    from undermargin.cli import show_paper as show
    from undermargin.errors import InputError, UndermarginError
    from undermargin.paper import Results, write

    files: list[Path] = []
    failures: list[str] = []
    for name, some in cells.items():
        try:
            if is_run:
                runner.run(some, show.cell)
        except UndermarginError as error:  # such as a missing data set: the other experiments are still run
            failures.append(f"{name}: {error}")
        except KeyboardInterrupt:
            show.aside("interrupted; run the same command again to resume")
            raise typer.Exit(130) from None
        try:
            files += write(name, Results.read(runner.store, preset, runner.root))
        except InputError as error:
            failures.append(f"{name}: {error}")
    return files, failures


def _datasets(root: Path) -> list[dict[str, Any]]:
    from undermargin.sources.official import OFFICIAL, found

    return [
        {
            "name": name,
            "path": None if one.path is None else str(one.path),
            "counts": dict(one.counts),
            "home": OFFICIAL[name].home,
            "place": str(root / OFFICIAL[name].place),
        }
        for name, one in found(root).items()
    ]


def _experiments() -> list[dict[str, Any]]:
    from undermargin.paper import EXPERIMENTS

    return [
        {"name": name, "title": row.title, "claim": row.claim, "cost": row.cost, "presets": list(row.presets)}
        for name, row in EXPERIMENTS.items()
    ]


def _filtered(cells: list[Any], only: list[str] | None) -> list[Any]:
    """The cells of these rows of the tables; all cells if none is named."""
    from undermargin.errors import InputError
    from undermargin.paper.experiments.grid import row_of
    from undermargin.paper.shared import IDENTIFIERS
    from undermargin.recipes import RECIPES

    known = dict.fromkeys([*RECIPES, *IDENTIFIERS])
    for name in only or ():
        if name not in known:
            raise InputError(f"there is no recipe {name!r}; choose from {', '.join(known)}")
    return [cell for cell in cells if not only or row_of(cell) in only]


def _plan(cells: list[Any], results: Any) -> list[dict[str, Any]]:
    """Every cell once: whether it has been run, and else how long it will take."""
    from undermargin.paper.estimate import expected_seconds

    once = {cell.key: cell for cell in cells}
    missing = [cell for key, cell in once.items() if key not in results.rows]
    expected = dict(zip((cell.key for cell in missing), expected_seconds(missing, results), strict=True))
    return [
        {"cell": str(cell), "key": key, "is_done": key in results.rows, "expected_seconds": expected.get(key)}
        for key, cell in once.items()
    ]
