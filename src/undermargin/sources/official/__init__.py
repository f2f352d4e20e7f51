"""The data sets of the paper in their published layouts: found below a folder, checked and loaded, never downloaded."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from undermargin.errors import InputError
from undermargin.sources.official import cifar, cifar_n, clothing, idx, imagenet, tiny_imagenet, webvision
from undermargin.sources.official.checksums import UNCHECKED
from undermargin.sources.official.record import Files, OfficialSet, Request, Split

__all__ = ["OFFICIAL", "Files", "Found", "Official", "OfficialSet", "Split", "found", "load"]


@dataclass(frozen=True)
class Official:
    """A data set: where it is published, where it is expected, and how it is located and loaded."""

    home: str
    place: str  # below the folder of data sets
    locate: Callable[[Path], Path | None]
    load: Callable[[Path, Request], OfficialSet]
    count: Callable[[Path], dict[str, int]] | None = None  # samples per split, if counting is cheap
    splits: tuple[Split, ...] = ("train", "test")
    columns: tuple[str, ...] = ()  # columns of labels, the default first, if there are several
    sizes: Mapping[str, int] = field(default_factory=dict)  # samples per split as published, if a copy must have all


OFFICIAL: Mapping[str, Official] = MappingProxyType(
    {
        "mnist": Official(
            "http://yann.lecun.com/exdb/mnist/",
            "mnist/train-images-idx3-ubyte.gz and the three others",
            idx.locate_mnist,
            idx.load_mnist,
            idx.count_idx,
            sizes={"train": 60_000, "test": 10_000},
        ),
        "fashion-mnist": Official(
            "https://github.com/zalandoresearch/fashion-mnist",
            "fashion-mnist/train-images-idx3-ubyte.gz and the three others",
            idx.locate_fashion,
            idx.load_fashion,
            idx.count_idx,
            sizes={"train": 60_000, "test": 10_000},
        ),
        "cifar10": Official(
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            "cifar-10-python.tar.gz",
            cifar.locate_cifar10,
            cifar.load_cifar10,
            cifar.count_cifar10,
            sizes={"train": 50_000, "test": 10_000},
        ),
        "cifar100": Official(
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            "cifar-100-python.tar.gz",
            cifar.locate_cifar100,
            cifar.load_cifar100,
            columns=("fine", "coarse"),
            sizes={"train": 50_000, "test": 10_000},
        ),
        "cifar10n": Official(
            "https://github.com/UCSC-REAL/cifar-10-100n",
            "cifar-n/CIFAR-10_human.pt",
            cifar_n.locate_cifar10n,
            cifar_n.load_cifar10n,
            columns=tuple(cifar_n.COLUMNS10),
        ),
        "cifar100n": Official(
            "https://github.com/UCSC-REAL/cifar-10-100n",
            "cifar-n/CIFAR-100_human.pt",
            cifar_n.locate_cifar100n,
            cifar_n.load_cifar100n,
            columns=tuple(cifar_n.COLUMNS100),
        ),
        "tiny-imagenet": Official(
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "tiny-imagenet-200.zip",
            tiny_imagenet.locate,
            tiny_imagenet.load,
            tiny_imagenet.count,
        ),
        "webvision": Official(
            "https://data.vision.ee.ethz.ch/cvl/webvision/dataset2017.html",
            "webvision, with info/, google/, flickr/ and val_images_256/",
            webvision.locate,
            webvision.load,
        ),
        "webvision50": Official(
            "https://data.vision.ee.ethz.ch/cvl/webvision/dataset2017.html",
            "webvision, with info/, google/, flickr/ and val_images_256/",
            webvision.locate_few,
            webvision.load_few,
        ),
        "clothing1m": Official(
            "https://github.com/Cysu/noisy_label",
            "clothing1m, with the lists and images/",
            clothing.locate,
            clothing.load,
            splits=("train", "val", "test"),
        ),
        "clothing100k": Official(
            "https://github.com/Cysu/noisy_label",
            "clothing1m, with the lists and images/",
            clothing.locate_subset,
            clothing.load_subset,
            splits=("train", "val", "test"),
        ),
        "imagenet": Official(
            "https://image-net.org/challenges/LSVRC/2012/",
            "imagenet, with train/ and val/ or the tar files",
            imagenet.locate,
            imagenet.load,
        ),
    }
)


@dataclass(frozen=True)
class Found:
    """What is known about a data set without loading it."""

    path: Path | None  # None: not found
    counts: Mapping[str, int]  # samples per split, if they can be counted quickly


def load(
    name: str,
    root: str | Path,
    split: Split = "train",
    *,
    column: str | None = None,
    seed: int = 0,
    check: bool = True,
) -> OfficialSet:
    """One split of a data set in OFFICIAL, found below `root`.

    `column` chooses among human labels (CIFAR-10N: aggre, random1, random2, random3, worse; CIFAR-100N: fine, coarse),
    `seed` draws a random subset (clothing100k). `check=False` accepts files whose checksums or numbers of samples
    differ from the published ones.
    """
    if name not in OFFICIAL:
        raise InputError(f"there is no data set {name!r}; choose from {', '.join(OFFICIAL)}")
    row = OFFICIAL[name]
    if split not in row.splits:
        raise InputError(f"{name} has no split {split!r}; choose from {', '.join(row.splits)}")
    if column is not None and column not in row.columns:
        choice = f"choose from {', '.join(row.columns)}" if row.columns else "it has one set of labels only"
        raise InputError(f"{name} has no labels {column!r}; {choice}")
    path = row.locate(Path(root))
    if path is None:
        raise InputError(f"{name} is not in {root}; download it from {row.home} and put it at {Path(root) / row.place}")
    chosen = column or (row.columns[0] if row.columns else None)
    loaded = row.load(path, Request(Path(root), split, chosen, seed, check))
    if check and len(loaded) != row.sizes.get(split, len(loaded)):
        raise InputError(
            f"{path} has {len(loaded)} samples in its split {split}, {row.sizes[split]} are published; {UNCHECKED}"
        )
    return loaded


def found(root: str | Path) -> dict[str, Found]:
    """Which data sets are below `root`, where they are and how large; nothing is loaded or checked."""
    return {name: _found(row, Path(root)) for name, row in OFFICIAL.items()}


def _found(row: Official, root: Path) -> Found:
    path = row.locate(root)
    if path is None or row.count is None:
        return Found(path, {})
    try:
        return Found(path, row.count(path))
    except (InputError, OSError, EOFError, zlib.error, pa.ArrowException):
        return Found(path, {})  # it is damaged: loading it says how
