"""Frameworks are optional: an adapter without its framework names the extra that installs it."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """The framework's module, or an ImportError that names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise  # the framework is installed, but something it needs is not
        raise ImportError(f'{module} is not installed. Run: pip install "undermargin[{extra}]"', name=module) from None
