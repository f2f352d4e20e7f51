"""What a notebook shows of a scan: the headline, the cutoff, and the most suspicious samples."""

from html import escape
from typing import Any

from undermargin.errors import FolderError
from undermargin.scans.folder import Folder

NUM_SHOWN = 10  # samples
COLUMNS = ("id", "label", "suggested_label", "score")


def page(folder: Folder) -> str:
    """HTML in which everything that comes from the data is text."""
    name = escape(str(folder.path))
    try:
        verdicts, summary = folder.verdicts(), folder.read_json("summary.json")
    except FolderError as error:
        return f"<p>{escape(str(error))}</p>"
    cutoff = summary["cutoff"]
    rows = verdicts.to_arrow().slice(0, min(NUM_SHOWN, len(verdicts.flagged))).select(COLUMNS).to_pylist()
    head = "".join(f"<th>{column.replace('_', ' ')}</th>" for column in COLUMNS)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(row[column])}</td>' for column in COLUMNS)}</tr>" for row in rows)
    return (
        f"<p><b>{escape(str(verdicts))}</b><br>cutoff {escape(cutoff['name'])}: {escape(cutoff['description'])}"
        f"<br>{name}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else escape("" if value is None else str(value))
