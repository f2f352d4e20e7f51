"""The paper, reproduced: every table and figure from one command, at the paper's size or smaller."""

from pathlib import Path

from undermargin.errors import InputError
from undermargin.paper import figures
from undermargin.paper.experiment import Experiment, Results
from undermargin.paper.experiments import EXPERIMENTS
from undermargin.paper.runner import Runner
from undermargin.paper.store import Store
from undermargin.paper.study import PRESETS, Preset
from undermargin.storage.files import replacing

__all__ = ["EXPERIMENTS", "PRESETS", "Preset", "Results", "Runner", "Store", "chosen", "figures", "names", "write"]


def names(preset: Preset) -> list[str]:
    """The experiments that can be run in a preset."""
    return [name for name, experiment in EXPERIMENTS.items() if preset in experiment.presets]


def chosen(name: str, preset: Preset) -> Experiment:
    """An experiment by name, which must be one of the preset's."""
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    if preset not in EXPERIMENTS[name].presets:
        raise InputError(f"{name} is not part of preset {preset}, which has {', '.join(names(preset))}")
    return EXPERIMENTS[name]


def write(name: str, results: Results) -> list[Path]:
    """Write the tables and figures of an experiment, from the cells that have been run; returns the files."""
    experiment, written = chosen(name, results.preset), []
    for table in (table for table in experiment.tables(results) if table.rows):
        texts = {"md": table.markdown(), "tex": table.latex(), "csv": table.csv()}
        for suffix, text in texts.items() if table.is_listed else [("csv", texts["csv"])]:
            path = _place(results, "tables", f"{table.name}.{suffix}")
            with replacing(path) as partial:
                partial.write_text(text)
            written.append(path)
    for title, figure in experiment.figures(results).items():
        path = _place(results, "figures", f"{title}.svg")
        with replacing(path) as partial:
            figures.save(figure, partial)
        written.append(path)
    return written


def _place(results: Results, kind: str, name: str) -> Path:
    path = results.store.folder / kind / results.preset / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
