"""Libraries that only some models need, imported when one of them is asked for."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from undermargin.errors import ModelError


def library(name: str, *, extra: str) -> ModuleType:
    """The module `name`; what is missing or does not import is one line, and says what to do."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0]:
            raise _not_installed(error.name, extra) from None
        raise _broken(name, error) from None
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise _broken(name, error) from None


def package_folder(name: str, *, extra: str) -> Path:
    """Where a package that carries weights lies; none of its code runs."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise _not_installed(name, extra)
    return Path(spec.submodule_search_locations[0])


def one_line(error: BaseException) -> str:
    """What an error says first; the rest is advice for users of the library that raised it."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error).__name__


def _not_installed(name: str, extra: str) -> ModelError:
    return ModelError(f'{name} is not installed; pip install "undermargin[{extra}]"')


def _broken(name: str, error: Exception) -> ModelError:
    import torch

    top = name.partition(".")[0]
    return ModelError(
        f"{top} is installed but does not import beside torch {torch.__version__} ({one_line(error)}); "
        "install the builds of both that belong together, or choose another model"
    )
