"""Frameworks are optional: an adapter whose framework is missing names the extra to install."""

from importlib import import_module
from types import ModuleType

from undermargin.errors import InputError


class MissingExtra(InputError, ImportError):  # noqa: N818 - it reads as what happened
    """A framework that an adapter needs is not installed."""


def require(module: str, extra: str) -> ModuleType:
    """The module, imported; where its package is missing, an error that names the extra to install."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there and lacks something of its own
        raise MissingExtra(f'{package} is not installed. Run: pip install "undermargin[{extra}]"') from None
