"""The page: a report's data as one HTML file that needs no other file and runs only its own script."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from undermargin.report import charts

HERE = Path(__file__).parent
PAGE_SIZE = {"images": 24, "text": 10, "table": 10}  # samples on one page of the gallery
MOST_ROWS = 12  # of a table of groups; the others are folded away


def render(data: dict[str, Any]) -> str:
    """The HTML page of a report's data. Everything from the data set is escaped; only our own style and script run."""
    style, script = ((HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            data,
            style=style,
            script=script,
            policy=policy(style, script),
            page_size=PAGE_SIZE.get(str(data["kind"]), 10),
            most_rows=MOST_ROWS,
        )
    )


def policy(style: str, script: str) -> str:
    """The content security policy: pictures inside the page, this style and this script; nothing from elsewhere."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": count, "percent": percent, "number": number, "span": span, "told": told}
    environment.globals |= {
        "bars": charts.bars,
        "curves": charts.curves,
        "scale": charts.scale,
        "shades": charts.shades,
    }
    return environment


def count(value: float) -> str:
    """A whole number for people to read."""
    return f"{value:,.0f}"


def percent(share: float | None) -> str:
    """A share for people to read, with as many digits as make sense.

    >>> percent(0.0312), percent(0.00042), percent(0), percent(1)
    ('3.1%', '0.04%', '0%', '100%')
    """
    if share is None:
        return "unknown"
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{share:.2%}" if min(share, 1 - share) < 0.001 else f"{share:.1%}"


def number(value: float | None) -> str:
    """A score for people to read, with a typographic minus."""
    return "none" if value is None else f"{value:,.3g}".replace("-", "\N{MINUS SIGN}")


def span(ends: Sequence[float | None]) -> str:
    """An interval for people to read; an end that is not known is open.

    >>> span([1.5, 2.25]), span([1.5, None]), span([None, 2.25])
    ('1.5 to 2.25', '1.5 or more', '2.25 or less')
    """
    low, high = ends
    if low is None:
        return "unknown" if high is None else f"{number(high)} or less"
    return f"{number(low)} or more" if high is None else f"{number(low)} to {number(high)}"


def told(record: dict[str, Any]) -> str:
    """A record for people to read; empty entries are left out.

    >>> told({"epochs": 6, "is_strict": False, "drops": []})
    'epochs 6, strict no'
    """
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{name.removeprefix('is_').replace('_', ' ')} {words[value] if isinstance(value, bool) else value}"
        for name, value in record.items()
        if value not in (None, [], {})
    )
