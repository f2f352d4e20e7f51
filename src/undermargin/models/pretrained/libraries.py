"""Optional libraries that some models need, imported on demand."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from undermargin.errors import ModelError


def library(name: str, *, extra: str) -> ModuleType:
    """Import the module `name`; raises `ModelError` with instructions if it is missing or fails to import."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0]:
            raise _not_installed(error.name, extra) from None
        raise _broken(name, error) from None
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise _broken(name, error) from None


def package_folder(name: str, *, extra: str) -> Path:
    """The folder of a package that contains weights, found without running its code."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise _not_installed(name, extra)
    return Path(spec.submodule_search_locations[0])


def one_line(error: BaseException) -> str:
    """The first line of an error message; the rest is usually advice for users of the library that raised it."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error).__name__


def _not_installed(name: str, extra: str) -> ModelError:
    return ModelError(f'{name} is not installed; run pip install "undermargin[{extra}]"')


def _broken(name: str, error: Exception) -> ModelError:
    import torch

    top = name.partition(".")[0]
    return ModelError(
        f"{top} is installed but cannot be imported with torch {torch.__version__} ({one_line(error)}); "
        "install matching builds of both, or choose another model"
    )
