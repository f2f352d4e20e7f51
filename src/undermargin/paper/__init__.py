"""The paper, reproduced: every table and figure from one command, at the paper's size or at a laptop's."""

from pathlib import Path

from undermargin.errors import InputError
from undermargin.paper import figures
from undermargin.paper.experiment import Experiment, Results
from undermargin.paper.experiments import EXPERIMENTS
from undermargin.paper.runner import OnCell, Runner
from undermargin.paper.store import Store
from undermargin.paper.study import PRESETS, Preset
from undermargin.storage.files import replacing

__all__ = ["EXPERIMENTS", "PRESETS", "Preset", "Results", "Runner", "Store", "chosen", "figures", "reproduce", "write"]

FORMATS = ("svg", "pdf")


def chosen(name: str) -> Experiment:
    """A row of EXPERIMENTS."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def reproduce(
    name: str,
    preset: Preset,
    runner: Runner,
    on_cell: OnCell = lambda cell, numbers: None,  # noqa: ARG005
) -> list[Path]:
    """Run what an experiment still lacks, and write its tables and figures; their files are returned."""
    runner.run(chosen(name).cells(preset), on_cell)
    return write(name, Results.read(runner.store, preset, runner.root))


def write(name: str, results: Results) -> list[Path]:
    """An experiment's tables and figures of what has been run, below the store's folder."""
    experiment, written = chosen(name), []
    for table in (table for table in experiment.tables(results) if table.rows):
        texts = {"md": table.markdown(), "tex": table.latex(), "csv": table.csv()}
        for suffix, text in texts.items() if table.is_listed else [("csv", texts["csv"])]:
            path = _place(results, "tables", f"{table.name}.{suffix}")
            with replacing(path) as partial:
                partial.write_text(text)
            written.append(path)
    for title, figure in experiment.figures(results).items():
        for suffix in FORMATS:
            path = _place(results, "figures", f"{title}.{suffix}")
            with replacing(path) as partial:
                figures.save(figure, partial, suffix)
            written.append(path)
    return written


def _place(results: Results, kind: str, name: str) -> Path:
    path = results.store.folder / kind / results.preset / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
