"""One self-contained page about a scan: numbers and pictures for reading.

`describe` makes the data, `render` makes the page; `report` does both and writes a file.
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
    """Write the page, by default to report.html in the scan's folder, and return its path.

    `by` names columns of the data set: the flagged share is shown for each of their values, besides that of every
    class. Without thumbnails the page holds no picture, text or row of the data, only ids, labels and numbers.
    """
    page = render(describe(folder, by=by, num_samples=num_samples, has_thumbnails=has_thumbnails))
    path = Path(out) if out is not None else folder / "report.html"
    with replacing(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path
