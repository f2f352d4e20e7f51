"""One self-contained page about a scan: numbers and pictures for reading.

`describe` makes the data, `render` the page; `report` does both and leaves a file.
"""

from collections.abc import Sequence
from pathlib import Path

from undermargin.report.content import NUM_SAMPLES, describe
from undermargin.report.page import render
from undermargin.scans.folder import Folder
from undermargin.storage.files import replacing

__all__ = ["NUM_SAMPLES", "describe", "render", "report"]


def report(
    folder: Folder,
    out: str | Path | None = None,
    *,
    by: Sequence[str] = (),
    num_samples: int = NUM_SAMPLES,
    has_thumbnails: bool = True,
) -> Path:
    """Write the page, to report.html in the scan's folder unless told otherwise, and say where it is.

    `by` names columns of the data set: the flagged share is shown for each of their values, beside that of every class.
    Without thumbnails no picture, text or row of the data leaves it, only ids, labels and numbers.
    """
    page = render(describe(folder, by=by, num_samples=num_samples, has_thumbnails=has_thumbnails))
    path = Path(out) if out is not None else folder / "report.html"
    with replacing(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path
