"""What a scan was asked to do: written into its folder, and compared when it goes on."""

import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

import undermargin
from undermargin.tracking import ranks
from undermargin.sources.samples import Samples
from undermargin.errors import FolderError
from undermargin.scans.folder import Folder
from undermargin.procedure import Procedure
from undermargin.storage.json import to_json
from undermargin.training.engine import Budget
from undermargin.training.plan import MakeModel

COMPARED = (
    "model", "budget", "procedure", "seed", "versions", "num_threads", "jobs", "precision", "device", "num_processes",
    "stops", "records", "trusted",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """How a scan is run, where the data do not decide: every field has a good default."""

    procedure: Procedure = Procedure.default
    cutoff: str | float = "auto"
    model: str | MakeModel | None = None  # chosen from the data
    epochs: int | None = None  # exactly so many in each fold; None: at most as many as the data suggest
    seed: int = 0
    jobs: int = 1  # folds side by side: 1 or 2; 0: 2 for images on a CPU with two cores or more
    precision: str = "no"  # or bf16, fp16
    decisions: str | Path | None = None  # an earlier scan of the same data whose decisions are trusted
    records: bool = False  # every sample's margin at every epoch

    @property
    def stops(self) -> bool:
        """Whether a fold ends when its ranking has settled."""
        return self.epochs is None and self.procedure.epochs is None


def asked(samples: Samples, model: str, budget: Budget, options: Options) -> dict[str, Any]:
    """Everything that verdicts depend on."""
    return {
        "source": samples.found,
        "kind": samples.kind,
        "num_samples": len(samples),
        "class_names": samples.class_names,
        "model": model,
        "model_name": options.model if isinstance(options.model, str) else None,
        "budget": asdict(budget),
        "procedure": asdict(options.procedure),
        "seed": options.seed,
        "precision": options.precision,
        "stops": options.stops,
        "records": options.records,
        **environment(),
    }


def claim(folder: Folder, config: dict[str, Any]) -> None:
    """Write what is asked, or make sure that what the folder holds was asked in the same words."""
    if (folder / "config.json").is_file():
        _compare(folder.read_json("config.json"), config, folder)
    else:
        folder.write_json("config.json", config)


def environment() -> dict[str, Any]:
    """What else the numbers depend on: versions, the number of threads, the device."""
    return {
        "versions": {
            "undermargin": undermargin.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "num_threads": torch.get_num_threads(),
        "num_processes": ranks.num_ranks(),
        "device": "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu",
    }


def _compare(before: dict[str, Any], now: dict[str, Any], folder: Folder) -> None:
    if before.get("fingerprint") != now["fingerprint"]:
        raise FolderError(f"{folder.path} holds a scan of other data; choose another folder with --out")
    for name in COMPARED:
        if to_json(before.get(name)) != to_json(now[name]):
            raise FolderError(
                f"{folder.path} holds a scan with another {name}: {to_json(before.get(name), indent=None)} instead of "
                f"{to_json(now[name], indent=None)}; choose another folder with --out, or take the old one away"
            )
