"""What a scan was asked to do: declared once, written into its folder, and compared when it is resumed."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import undermargin
from undermargin.errors import FolderError
from undermargin.procedure import Procedure
from undermargin.scans.folder import Folder
from undermargin.storage.json import plain

if TYPE_CHECKING:
    from undermargin.training.plan import MakeModel

OWN_TRAINING = "the user's own training"
LIBRARIES = ("numpy", "scikit-learn")
NOT_COMPARED = {"is_compared": False}


@dataclass(frozen=True)
class Settings:
    """How a scan is run, where the data do not decide; every field is a parameter of `scan` and has its default.

    A field's `key` is its name in config.json, where that differs. One that is not compared may change on resume.
    """

    procedure: Procedure = Procedure.default
    # None: the procedure's own, which is `probability` for the default one
    cutoff: str | float | None = field(default=None, metadata=NOT_COMPARED)
    model: "str | MakeModel | None" = field(default=None, metadata={"key": "model_name"})  # None: chosen from the data
    epochs: int | None = None  # exactly this many per fold; None: stop when the ranking settles
    seed: int = 0  # of folds and training
    # folds trained side by side: 1 or 2; 0: 2 for images on a CPU with two cores or more. The number chosen is compared
    jobs: int = field(default=0, metadata=NOT_COMPARED | {"key": "asked_jobs"})
    # flag as many samples as keep this expected precision, or this many samples; instead of even odds
    precision: float | None = field(default=None, metadata=NOT_COMPARED | {"key": "expected_precision"})
    budget: int | None = field(default=None, metadata=NOT_COMPARED | {"key": "flag_budget"})
    folds: int | None = field(default=None, metadata=NOT_COMPARED | {"key": "asked_folds"})  # None: chosen
    mixed_precision: str = field(default="no", metadata={"key": "precision"})  # or bf16, fp16
    decisions: str | Path | None = field(default=None, metadata=NOT_COMPARED)  # an earlier scan whose decisions count
    records: bool = False  # every sample's margin at every epoch, for the report

    @property
    def stops(self) -> bool:
        """Whether a fold ends when its ranking has settled."""
        return self.epochs is None and self.procedure.epochs is None

    def config(self) -> dict[str, Any]:
        """The fields as config.json has them."""
        return {_key(one): _named(getattr(self, one.name)) for one in fields(self)}


COMPARED = tuple(one.metadata.get("key", one.name) for one in fields(Settings) if one.metadata.get("is_compared", True))
# what follows from the settings and the data, and what else the numbers depend on
DERIVED = ("model", "budget", "stops", "trusted", "jobs", "runs", "num_folds", "versions", "num_threads", "device",
           "num_processes")  # fmt: skip


def _key(one: Any) -> str:
    return str(one.metadata.get("key", one.name))


def _named(value: Any) -> Any:
    """A setting as JSON has it; a function has no name that another session would know."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return None if callable(value) else str(value) if isinstance(value, Path) else value


def claim(folder: Folder, config: Mapping[str, Any]) -> None:
    """Write what is asked into a new folder; for one that holds a scan, make sure that the same was asked before."""
    if (folder / "config.json").is_file():
        before = folder.read_json("config.json")
        compare(before, config, folder.path)
        if before.get("cutoff") != config["cutoff"]:  # other verdicts from the same training
            folder.write_json("config.json", before | {"cutoff": config["cutoff"]})
    else:
        folder.write_json("config.json", config)


def compare(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raise if a scan's configuration differs from what is asked now, naming every setting that does."""
    now = plain(now)
    if before.get("fingerprint") != now["fingerprint"]:
        raise FolderError(f"{path} holds a scan of other data; choose another folder with --out")
    for names in (COMPARED, DERIVED):  # what follows from a changed setting need not be named beside it
        known = [name for name in names if name in before and name in now]
        changed = [text for name in known for text in _differences(name, before[name], now[name])]
        if changed:
            raise FolderError(
                f"{path} was made with different settings: {'; '.join(changed)}. Choose another folder with --out, "
                "or delete the old one"
            )


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    """In words, each entry of a setting that changed.

    >>> list(_differences("budget", {"epochs": 20, "batch_size": 64}, {"epochs": 40, "batch_size": 64}))
    ['epochs 20, now 40']
    """
    if isinstance(before, dict) and isinstance(now, dict) and name != "trusted":
        for key in dict.fromkeys([*before, *now]):
            yield from _differences(key, before.get(key), now.get(key))
    elif before != now and name == "trusted":
        yield f"{len(before)} trusted decisions, now {len(now)}" + " others" * (len(before) == len(now))
    elif before != now:
        yield f"{name.replace('_', ' ')} {_told(before)}, now {_told(now)}"


def _told(value: Any) -> str:
    return "not set" if value is None else str(value)


def versions() -> dict[str, str]:
    """Versions of what computes the numbers."""
    ours = {"undermargin": undermargin.__version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in LIBRARIES}


def environment() -> dict[str, Any]:
    """What else the numbers of a training depend on: versions, the number of threads and processes, the device."""
    import torch

    from undermargin.tracking import ranks

    return {
        "versions": versions() | {"torch": torch.__version__},
        "num_threads": torch.get_num_threads(),
        "num_processes": ranks.num_ranks(),
        "device": "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu",
    }
