"""Images as raw pixels: in memory if they fit, else in a file that is read a few rows at a time.

Decoding and scaling a photo takes much longer than reading its pixels back, and every epoch needs them. So each photo
is decoded once; scaled down, its pixels take a fraction of the photo's own size.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.pictures import MAX_SKIPPED_SHARE, decode
from undermargin.sources.samples import OnRead, Reading

DECODED_TOGETHER = 256  # images at a time: enough for every core, few enough for memory

Bytes = npt.NDArray[np.uint8]
Skipped = list[tuple[str, str]]  # (id, reason)


class Pixels:
    """Images in a file, uint8 (samples, height, width, channels): indexed like an array, never read as a whole."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path, self.shape = path, shape
        self.row_bytes = int(np.prod(shape[1:]))
        self.file = path.open("rb", buffering=0)
        self.lock = threading.Lock()  # another thread must not move the position between seek and read

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Pixels, (self.path, self.shape)  # another process opens the file itself

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Bytes:
        """The images of a slice or an array of indices, (rows, height, width, channels); or a single one."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            rows = range(start, stop, step)
        elif np.ndim(rows) == 0:
            return np.asarray(self[[int(rows)]][0])
        images = np.empty((len(rows), *self.shape[1:]), np.uint8)
        with self.lock:
            for place, row in enumerate(rows):
                self.file.seek(int(row) * self.row_bytes)
                if self.file.readinto(images[place].data) != self.row_bytes:
                    raise InputError(f"{self.path} ends before image {row} of {len(self)}; was it cut off?")
        return images

    def blocks(self) -> Iterator[Bytes]:
        """All images, some at a time."""
        for start in range(0, len(self), DECODED_TOGETHER):
            yield self[start : start + DECODED_TOGETHER]


def shrunk(images: Bytes, size: int) -> Bytes:
    """Images (samples, side, side, channels) at a smaller side: each pixel is the mean of a square of pixels."""
    number, height, width, channels = images.shape
    factor = height // size
    if height != width or factor * size != height:
        raise InputError(
            f"images of {height} x {width} pixels cannot be scaled to {size}; choose a side that divides them"
        )
    squares = images.reshape(number, size, factor, size, factor, channels)
    return np.asarray(squares.mean((2, 4), dtype=np.float32).round().astype(np.uint8))


def decode_all(
    files: Iterable[tuple[str, Callable[[], bytes]]], total: int, size: int, reading: Reading
) -> tuple[Bytes | Pixels, list[int], Skipped]:
    """Decode (id, read) of every image on all cores: pixels, positions of the readable images, and the others.

    Pixels that do not fit into memory go to the file `reading.spill`.
    """
    spill = reading.spill_for(total, size)
    if spill is None:
        images = np.empty((total, size, size, 3), np.uint8)
        kept, skipped = _fill(files, total, size, images.__setitem__, reading.on_read)
        result: Bytes | Pixels = images[: len(kept)]
    else:
        spill.parent.mkdir(parents=True, exist_ok=True)
        with spill.open("wb") as file:
            put = lambda _, pixels: file.write(pixels.tobytes())  # noqa: E731
            kept, skipped = _fill(files, total, size, put, reading.on_read)
        result = Pixels(spill, (len(kept), size, size, 3))
    if len(skipped) > MAX_SKIPPED_SHARE * total:
        raise InputError(
            f"{len(skipped)} of {total} images cannot be read, the first is {skipped[0][0]}: {skipped[0][1]}"
        )
    return result, kept, skipped


def _fill(
    files: Iterable[tuple[str, Callable[[], bytes]]],
    total: int,
    size: int,
    put: Callable[[int, Bytes], object],
    on_read: OnRead,
) -> tuple[list[int], Skipped]:
    kept: list[int] = []
    skipped: Skipped = []
    waiting, position = iter(files), 0
    with ThreadPoolExecutor() as threads:
        while some := list(islice(waiting, DECODED_TOGETHER)):
            for (name, _), pixels in zip(some, threads.map(lambda one: _decoded(one[1], size), some), strict=True):
                if isinstance(pixels, str):
                    skipped.append((name, pixels))
                else:
                    put(len(kept), pixels)
                    kept.append(position)
                position += 1
            on_read(position, total)
    return kept, skipped


def _decoded(read: Callable[[], bytes], size: int) -> Bytes | str:
    """The pixels, or the reason why there are none."""
    try:
        return decode(read(), size)
    except InputError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
