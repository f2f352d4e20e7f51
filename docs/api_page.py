"""docs/api/: the API reference, one directive per public name; mkdocstrings inserts the docstrings in the site."""

import ast
import pkgutil
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import undermargin

# the order in which a reader meets the public names; further ones follow in alphabetical order
ORDER = ("scan", "Scan", "Tracker", "folds", "Fold", "Procedure", "threshold_samples", "Run", "identify", "Verdicts")
PUBLIC = "Import these names from `undermargin`."
MODULES = {  # page: title, modules, introduction
    "recipes": ("Recipes", ["recipes"], "Import these names from `undermargin.recipes`."),
    "cutoffs": ("Cutoffs", ["cutoffs"], "Import these names from `undermargin.cutoffs`."),
    "noise": ("Synthetic noise", ["noise"], "Import these functions from `undermargin.noise`."),
    "metrics": ("Metrics", ["verdicts.metrics"], "How good verdicts are, if the wrong labels are known."),
    "official": ("Official data sets", ["sources.official"], "The data sets of the paper in their published layouts."),
    "compat": ("Compatibility", ["compat.aum"], "A drop-in replacement for the authors' package."),
    "errors": ("Errors", ["errors"], "All exceptions and warnings."),
}
FAMILIES = {  # page: title, package whose public modules are listed, introduction
    "adapters": ("Adapters", "adapters", "One module per framework. Each needs the framework to be installed."),
    "importers": ("Importers", "importers", "Scores from the logs of other tools."),
}


def pages() -> dict[str, Callable[[], str]]:
    """A function for the text of each page, by the page's name."""
    made: dict[str, Callable[[], str]] = {"undermargin": _public}
    for page, (title, modules, introduction) in MODULES.items():
        made[page] = partial(_page, title, [f"undermargin.{module}" for module in modules], introduction)
    for page, (title, package, introduction) in FAMILIES.items():
        if find_spec(f"undermargin.{package}"):
            made[page] = partial(_page, title, _modules_of(f"undermargin.{package}"), introduction)
    return made


def _public() -> str:
    others = sorted(set(undermargin.__all__) - set(ORDER))
    names = [name for name in (*ORDER, *others) if name in undermargin.__all__]
    return _text("undermargin", PUBLIC, (f"undermargin.{name}" for name in names))


def _page(title: str, modules: list[str], introduction: str) -> str:
    names = [f"{module}.{name}" for module in modules for name in _exported(module)]
    return _text(title, introduction, names or modules)


def _exported(module: str) -> list[str]:
    """`__all__` of a module, read from its source: importing an adapter would import its framework."""
    spec = find_spec(module)
    source = "" if spec is None or spec.origin is None else Path(spec.origin).read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def _modules_of(package: str) -> list[str]:
    found = pkgutil.iter_modules(import_module(package).__path__)
    return [f"{package}.{module.name}" for module in found if not module.name.startswith("_")]


def _text(title: str, introduction: str, names: Iterable[str]) -> str:
    directives = "".join(f"\n::: {name}\n" for name in names)
    return f"# {title}\n\n{introduction}\n{directives}"
