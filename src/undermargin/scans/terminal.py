"""Text from a data set as a terminal may show it: names of classes and files can hold control characters."""

import re

# control characters, marks that turn the direction of text, line separators, lone surrogates
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    r"""The text with control characters spelled out, so that they cannot steer the terminal.

    >>> print(visible("cat\x1b[2Jdog"))
    cat\x1b[2Jdog
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def shown(text: object) -> str:
    """The same for rich's markup: brackets are text, too."""
    from rich.markup import escape

    return escape(visible(text))
