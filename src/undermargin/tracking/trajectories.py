"""Trajectories: the signals of every sample in every epoch, on disk, as one .npy file per epoch.

Memory is bounded by one block of samples.

trajectories/trajectories.json   {"signals": ["margin"], "num_samples": 60000, "logits_of": [3, 17]}
trajectories/epoch-00000.npy     (samples, signals) float32; nan: not observed in that epoch
trajectories/logits-00000.npy    (chosen samples, classes) float32, if full logits were requested
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.storage.files import replacing

Array = npt.NDArray[np.float32]


class Trajectories:
    """A folder of trajectories. A tracker writes one file per epoch; `logits_of` are samples to record in full.

    Files are written atomically, and writing an epoch again replaces its file: a resumed training leaves the same
    files as an uninterrupted one.
    """

    def __init__(self, folder: str | Path, *, logits_of: Sequence[int] = ()) -> None:
        self.folder = Path(folder)
        self.logits_of = np.asarray(logits_of, dtype=np.int64)
        if len(np.unique(self.logits_of)) < len(self.logits_of):
            raise InputError(
                f"logits_of names {len(self.logits_of)} samples, some of them twice; expected distinct indices"
            )

    def check(self, num_samples: int) -> None:
        """Raise an error if `logits_of` names a sample that does not exist."""
        unknown = self.logits_of[(self.logits_of < 0) | (self.logits_of >= num_samples)]
        if len(unknown):
            raise InputError(f"logits_of names sample {unknown[0]}, expected 0..{num_samples - 1}")

    @classmethod
    def open(cls, folder: str | Path) -> "Trajectories":
        """Open the trajectories that a training wrote to `folder`."""
        description = Path(folder) / "trajectories.json"
        if not description.is_file():
            raise InputError(f"{folder} holds no trajectories ({description.name} is missing)")
        return cls(folder, logits_of=json.loads(description.read_text())["logits_of"])

    def describe(self, signals: Sequence[str], num_samples: int) -> None:
        """Create the folder and describe its files in trajectories.json."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"signals": list(signals), "num_samples": num_samples, "logits_of": self.logits_of.tolist()})
        (self.folder / "trajectories.json").write_text(text + "\n")

    def write(self, epoch: int, shape: tuple[int, int], blocks: Iterable[tuple[slice, Array]]) -> None:
        """Write the signals of an epoch, (samples, signals), from consecutive blocks."""
        for kind in ("epoch", "logits"):
            for number, path in self._files(kind):
                if number > epoch:  # left by an earlier training in this folder
                    path.unlink()
        with replacing(self.folder / f"epoch-{epoch:05d}.npy") as path:
            file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
            for rows, block in blocks:
                file[rows] = block
            file.flush()

    def write_logits(self, epoch: int, logits: Array) -> None:
        """Write the logits of the chosen samples in an epoch."""
        with replacing(self.folder / f"logits-{epoch:05d}.npy") as path, path.open("wb") as file:
            np.save(file, logits.astype(np.float32))

    @property
    def signals(self) -> list[str]:
        """Names of the recorded signals."""
        return list(json.loads((self.folder / "trajectories.json").read_text())["signals"])

    @property
    def epochs(self) -> list[int]:
        """Numbers of the recorded epochs, in order."""
        return [number for number, _ in self._files("epoch")]

    def of(self, indices: Sequence[int], signal: str = "margin") -> Array:
        """One signal of these samples: (epochs, samples)."""
        if signal not in self.signals:
            raise InputError(f"{signal!r} was not recorded in {self.folder}; recorded are {', '.join(self.signals)}")
        column = self.signals.index(signal)
        files = self._files("epoch")
        return np.array([np.load(path, mmap_mode="r")[indices, column] for _, path in files], dtype=np.float32)

    def logits(self) -> Array:
        """Full logits of the chosen samples, in the order of `logits_of`: (epochs, samples, classes).

        Epochs recorded with another `logits_of`, before a training was resumed, are nan.
        """
        found = {number: np.load(path) for number, path in self._files("logits")}
        if not len(self.logits_of) or not found:
            raise InputError(f"no full logits were recorded in {self.folder}; choose samples with logits_of=")
        logits = np.full((len(self.epochs), *found[max(found)].shape), np.nan, np.float32)
        for place, number in enumerate(self.epochs):
            if number in found and found[number].shape == logits.shape[1:]:
                logits[place] = found[number]
        return logits

    def _files(self, kind: str) -> list[tuple[int, Path]]:
        """Files of this kind with their epochs, in order; other files in the folder are ignored."""
        found = ((re.fullmatch(rf"{kind}-(\d{{5,}})\.npy", path.name), path) for path in self.folder.glob("*.npy"))
        return sorted((int(match[1]), path) for match, path in found if match)
