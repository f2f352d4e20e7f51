"""Tables of results: as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from undermargin.paper.published import Number


@dataclass(frozen=True)
class Table:
    """Rows of text, and a caption that names the preset, so that no number is mistaken for the paper's."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_listed: bool = True  # in the docs; long lists are only written to a file

    def markdown(self) -> str:
        """The table as Markdown, for the docs."""
        lines = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        return f"**{self.caption}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def latex(self) -> str:
        """The table as LaTeX, for a paper."""
        rows = [" & ".join(_latex(text) for text in row) + r" \\" for row in (self.columns, *self.rows)]
        body = "\n".join([r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"])
        columns = "l" + "r" * (len(self.columns) - 1)
        return (
            f"\\begin{{table}}\n\\caption{{{_latex(self.caption)}}}\n"
            f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n\\end{{table}}\n"
        )

    def csv(self) -> str:
        """The table as CSV, for a spreadsheet."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()


def percent(values: Sequence[float | None], num_trials: int = 0) -> str:
    """Mean and standard deviation over seeds in percent, and the number of seeds if it is less than `num_trials`.

    >>> percent([0.1, 0.2]), percent([0.125], num_trials=4), percent([None])
    ('15.0 ± 7.1', '12.5 (1 of 4 seeds)', '')
    """
    known = [value for value in values if value is not None]
    if not known:
        return ""
    mean = f"{100 * np.mean(known):.1f}"
    text = mean if len(known) == 1 else f"{mean} ± {100 * np.std(known, ddof=1):.1f}"
    return f"{text} ({len(known)} of {num_trials} seeds)" if len(known) < num_trials else text


def published(number: Number) -> str:
    """A number of the paper, formatted as in its tables.

    >>> published((9.8, 0.1)), published(24.2), published("Diverged"), published(None)
    ('9.8 ± 0.1', '24.2', 'Diverged', '')
    """
    if number is None or isinstance(number, str):
        return number or ""
    return f"{number[0]} ± {number[1]}" if isinstance(number, tuple) else f"{number}"


def _latex(text: str) -> str:
    for sign in "%_&#":
        text = text.replace(sign, "\\" + sign)
    return text.replace("±", r"$\pm$")
