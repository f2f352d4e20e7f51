"""CIFAR-10N and CIFAR-100N: human labels of the CIFAR training sets, beside the true labels."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.official import cifar
from undermargin.sources.official.record import OfficialSet, Request, first_there, whole_numbers
from undermargin.sources.official.unpickling import entry, unpickled

PLACES = ("cifar-10-100n/data", "cifar-10-100n", "cifar-n", "data", ".")
COLUMNS10 = {
    "aggre": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "worse": "worse_label",
}
COLUMNS100 = {"fine": "noisy_label", "coarse": "noisy_coarse_label"}
TRUE100 = {"fine": "clean_label", "coarse": "clean_coarse_label"}


def locate_cifar10n(root: Path) -> Path | None:
    """The file of human labels."""
    return first_there(root, [f"{place}/CIFAR-10_human.pt" for place in PLACES])


def locate_cifar100n(root: Path) -> Path | None:
    """The file of human labels."""
    return first_there(root, [f"{place}/CIFAR-100_human.pt" for place in PLACES])


def load_cifar10n(path: Path, request: Request) -> OfficialSet:
    """CIFAR-10 with human labels; its test set is CIFAR-10's own."""
    plain = _plain("CIFAR-10", cifar.locate_cifar10, cifar.load_cifar10, request)
    return plain if request.split == "test" else _relabeled(plain, path, COLUMNS10[str(request.column)], "clean_label")


def load_cifar100n(path: Path, request: Request) -> OfficialSet:
    """CIFAR-100 with human labels; its test set is CIFAR-100's own."""
    plain = _plain("CIFAR-100", cifar.locate_cifar100, cifar.load_cifar100, request)
    column = str(request.column)
    return plain if request.split == "test" else _relabeled(plain, path, COLUMNS100[column], TRUE100[column])


def _plain(
    name: str,
    locate: Callable[[Path], Path | None],
    load: Callable[[Path, Request], OfficialSet],
    request: Request,
) -> OfficialSet:
    images = locate(request.root)
    if images is None:
        raise InputError(f"found the labels, but not the images of {name} in {request.root}; put them there")
    return load(images, request)


def _relabeled(plain: OfficialSet, path: Path, column: str, true_column: str) -> OfficialSet:
    columns = read_columns(path)
    labels, true_labels = (whole_numbers(entry(columns, name, path), name, path) for name in (column, true_column))
    if not np.array_equal(true_labels, plain.labels):
        raise InputError(
            f"the true labels of {path} are not those of {plain.found['path']}: its images come in another order; "
            "use the Python version of CIFAR, cifar-10-python.tar.gz or cifar-100-python.tar.gz"
        )
    found = {"path": str(path), "format": "CIFAR-N"}
    return OfficialSet(plain.images, labels, plain.class_names, true_labels, found)


def read_columns(path: Path) -> dict[str, Any]:
    """The columns of a file saved by torch, read without torch: a zip file with one pickle."""
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
            names = [name for name in file.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise InputError(f"{path} holds {len(names)} pickles, expected one")
            data = file.read(names[0])
    except zipfile.BadZipFile as error:
        raise InputError(f"{path} cannot be read as a file saved by torch: {error}; download it again") from None
    return unpickled(data, path)
