"""MNIST and Fashion-MNIST: idx files, compressed or not."""

import gzip
import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.official.checksums import check_md5
from undermargin.sources.official.record import OfficialSet, Request
from undermargin.sources.pixels import Bytes

IMAGES, LABELS = 2051, 2049  # the magic numbers
PREFIXES = {"train": "train", "test": "t10k"}
FASHION = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
DIGITS = [str(digit) for digit in range(10)]

# of the compressed file as published, and of its contents: mirrors compress them anew
MNIST_MD5 = {
    "train-images-idx3-ubyte": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
    "train-labels-idx1-ubyte": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
    "t10k-images-idx3-ubyte": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
    "t10k-labels-idx1-ubyte": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
}
FASHION_MD5 = {
    "train-images-idx3-ubyte": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    "train-labels-idx1-ubyte": ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
    "t10k-images-idx3-ubyte": ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
    "t10k-labels-idx1-ubyte": ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
}


def locate_mnist(root: Path) -> Path | None:
    """The folder of the idx files: MNIST/raw, mnist, or `root` itself."""
    return _folder(root, ("MNIST/raw", "mnist/raw", "mnist", "MNIST", "."))


def locate_fashion(root: Path) -> Path | None:
    """The folder of the idx files: FashionMNIST/raw or fashion-mnist; never `root` itself, where MNIST may be."""
    return _folder(root, ("FashionMNIST/raw", "fashion-mnist/raw", "fashion-mnist", "fashion", "FashionMNIST"))


def _folder(root: Path, places: Sequence[str]) -> Path | None:
    name = "train-images-idx3-ubyte"
    there = (root / place for place in places)
    return next((path for path in there if (path / name).is_file() or (path / f"{name}.gz").is_file()), None)


def load_mnist(folder: Path, request: Request) -> OfficialSet:
    """Digits, (samples, 28, 28, 1)."""
    return _load(folder, request, MNIST_MD5, DIGITS)


def load_fashion(folder: Path, request: Request) -> OfficialSet:
    """Clothes, (samples, 28, 28, 1)."""
    return _load(folder, request, FASHION_MD5, FASHION)


def _load(folder: Path, request: Request, known: Mapping[str, Sequence[str]], class_names: list[str]) -> OfficialSet:
    prefix = PREFIXES[request.split]
    arrays = []
    for name, magic in ((f"{prefix}-images-idx3-ubyte", IMAGES), (f"{prefix}-labels-idx1-ubyte", LABELS)):
        path = _either(folder, name)
        data = _contents(path)
        values = read_idx(data, magic, path)  # says more about a damaged file than its checksum does
        if request.check:
            check_md5(path, known[name], data)
        arrays.append(values)
    images, labels = arrays
    found = {"path": str(folder), "format": "idx"}
    return OfficialSet(images[..., None], labels.astype(np.int64), list(class_names), found=found)


def _either(folder: Path, name: str) -> Path:
    path = folder / name
    if path.is_file():
        return path
    if (packed := folder / f"{name}.gz").is_file():
        return packed
    raise InputError(f"{folder} has neither {name} nor {name}.gz; download the missing file and put it there")


def _contents(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked: {error}; download it again") from None


def read_idx(data: bytes, magic: int, path: Path) -> Bytes:
    """The array of an idx file: a magic number whose last byte counts the dimensions, their sizes, then the values."""
    if data[:4] != magic.to_bytes(4, "big"):
        raise InputError(f"{path} begins with {data[:4].hex() or 'nothing'}, expected the magic number {magic:08x}")
    start = 4 * (magic % 256 + 1)
    shape = tuple(np.frombuffer(data[4:start].ljust(start - 4, b"\0"), ">u4").tolist())
    if (num_values := len(data) - start) != math.prod(shape):
        raise InputError(
            f"{path} has {max(0, num_values):,} bytes of values, its header says {' x '.join(map(str, shape))}; "
            "was it cut off?"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()  # torch needs writable arrays


def count_idx(folder: Path) -> dict[str, int]:
    """Images per split, from the headers of their files."""
    counts = {}
    for split, prefix in PREFIXES.items():
        path = _either(folder, f"{prefix}-images-idx3-ubyte")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            counts[split] = int.from_bytes(file.read(8)[4:], "big")
    return counts
