"""Export a scan's answers to the formats of other tools: a table of formats, one small file each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from undermargin.errors import FolderError, InputError
from undermargin.export.answers import Answers, answers
from undermargin.export.cleanlab import write_cleanlab
from undermargin.export.fiftyone import write_fiftyone
from undermargin.export.huggingface import write_dataset
from undermargin.export.label_studio import write_label_studio
from undermargin.export.tables import write_csv, write_jsonl, write_parquet
from undermargin.scans.decisions import Decision
from undermargin.scans.folder import Folder

__all__ = ["FORMATS", "Format", "export"]


@dataclass(frozen=True)
class Format:
    """One row of FORMATS: `write(answers, path)` leaves a file or a folder at the path."""

    write: Callable[[Answers, Path], None]
    description: str
    is_folder: bool = False
    beside: str | None = None  # the suffix of a second file next to it


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "csv": Format(write_csv, "a table for spreadsheets, in which no cell is run as a formula"),
        "parquet": Format(write_parquet, "the same table, with texts exactly as they are"),
        "jsonl": Format(write_jsonl, "the same, one JSON object per line"),
        "label-studio": Format(
            write_label_studio, "tasks with predictions, and the labeling interface beside them", beside=".xml"
        ),
        "fiftyone": Format(write_fiftyone, "labels.json of a FiftyOneImageClassificationDataset; images in files only"),
        "cleanlab": Format(write_cleanlab, "the frame of cleanlab's label issues, as CSV or Parquet"),
        "datasets": Format(write_dataset, "a Hugging Face data set on disk, with extra columns", is_folder=True),
    }
)


def export(
    folder: Folder,
    to: str,
    out: str | Path,
    *,
    decisions: Mapping[int, Decision] | None = None,
    only_flagged: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write a scan's answers to `out` and return its path; a decision about a sample overrules its verdict.

    Decisions are those of the scan's own review, unless others are given, by index.
    """
    if to not in FORMATS:
        raise InputError(f"there is no format {to!r}; choose from {', '.join(FORMATS)}")
    path, chosen = Path(out), FORMATS[to]
    written = [path, *([path.with_suffix(chosen.beside)] if chosen.beside else [])]
    for one in written:
        if one.exists() and not overwrite:
            raise FolderError(f"{one} already exists; choose another path, or pass --overwrite")
        if one.exists() and one.is_dir() != chosen.is_folder:
            raise FolderError(f"{one} is a {'folder' if one.is_dir() else 'file'}; {to} cannot replace it")
    if len(set(written)) < len(written):
        raise InputError(f"{path.name} is the name of the file beside it; choose another suffix, such as .json")
    path.parent.mkdir(parents=True, exist_ok=True)
    decided = folder.decided() if decisions is None else decisions
    chosen.write(answers(folder, decided, only_flagged=only_flagged), path)
    return path
