"""Single images: from bytes to pixels, in any mode, orientation and size, within a limit on pixels."""

import io
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.sources.one_line import reason

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFile import ImageFile

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
SIZES = (32, 64)  # sides in pixels; larger photos are scaled down
MAX_SKIPPED_SHARE = 0.2  # more unreadable images than this are an error
LOOKED_AT = 64  # images whose size is looked at before one is chosen for all
PIXELATED = 64  # side in pixels: up to this size an image is shown as large squares
MAX_PIXELS = 89_478_485  # Pillow's own limit for a safe image: 256 MB in color
PIXELS_PER_CORE = 16_000_000  # decoded at the same time
# as Pillow calls them; others may start programs (EPS) or are no photos
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")


class _Room:
    """Limits how many pixels are decoded at the same time, so that large images do not fill the memory together."""

    def __init__(self) -> None:
        self.free = threading.Condition()
        self.taken = 0
        self.most = max(MAX_PIXELS, PIXELS_PER_CORE * (os.cpu_count() or 1))

    @contextmanager
    def holding(self, pixels: int) -> Iterator[None]:
        with self.free:
            self.free.wait_for(lambda: not self.taken or self.taken + pixels <= self.most)
            self.taken += pixels
        try:
            yield
        finally:
            with self.free:
                self.taken -= pixels
                self.free.notify_all()


_room = _Room()


def decode(data: bytes, size: int) -> npt.NDArray[np.uint8]:
    """The pixels (size, size, 3) of an image; its middle if it is not square."""
    from PIL import Image, ImageOps

    with _opened(data, size) as image, _room.holding(image.width * image.height):
        return np.asarray(ImageOps.fit(_upright(image), (size, size), Image.Resampling.BILINEAR))


def open_image(data: bytes, side: int) -> "Image.Image":
    """The first frame, upright, in RGB, without transparency; `side` is how large it must be at least."""
    with _opened(data, side) as image, _room.holding(image.width * image.height):
        return _upright(image)


@contextmanager
def _opened(data: bytes, side: int) -> Iterator["ImageFile"]:
    """An image whose header is read; damage and too many pixels become an InputError of one line."""
    try:
        with _identified(data) as image:
            if image.width * image.height > MAX_PIXELS:
                _shrink(image, side)
            yield image
    except InputError:
        raise
    except Exception as error:  # decoders raise all kinds of exceptions for damaged data
        raise InputError(f"damaged image: {reason(error)}") from None


def _identified(data: bytes) -> "ImageFile":
    """Like `Image.open`, without its process-wide limit on pixels: `_opened` has one of its own."""
    from PIL import Image

    Image.init()
    for factory, accept in (Image.OPEN[name] for name in FORMATS if name in Image.OPEN):
        if accept is None or accept(data[:16]) is True:
            with suppress(SyntaxError, IndexError, TypeError, struct.error):  # as in Pillow: not this format after all
                return factory(io.BytesIO(data), "")
    raise InputError("not an image")


def _shrink(image: "ImageFile", side: int) -> None:
    """Have a large JPEG decoded at a fraction of its size, or refuse the image.

    A progressive one is refused: its decoder keeps the whole image in memory at any scale.
    """
    width, height = image.size
    if image.format in ("JPEG", "MPO") and not image.info.get("progressive"):
        image.draft("RGB", (side, side))
    if image.width * image.height > MAX_PIXELS:
        raise InputError(f"{width:,} x {height:,} pixels; images of more than {MAX_PIXELS:,} pixels are not decoded")


def _upright(image: "Image.Image") -> "Image.Image":
    from PIL import Image, ImageOps

    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        colored = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", colored.size, "white"), colored)
    return image.convert("RGB")


def as_jpeg(image: "Image.Image", side: int) -> bytes:
    """An image of at most `side` pixels per side, encoded anew as JPEG."""
    from PIL import Image

    is_small = max(image.size) <= min(PIXELATED, side / 2)
    if is_small:  # a few large pixels are easier to look at than a blur
        factor = side // max(image.size)
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    image.thumbnail((side, side))
    data = io.BytesIO()
    image.convert("RGB").save(data, "JPEG", quality=90 if is_small else 82)
    return data.getvalue()


def common_size(files: Sequence[Path], image_size: int | None) -> int:
    """The side to which all images are scaled: as asked, or the largest of SIZES that most of them fill."""
    if image_size is not None:
        return image_size
    step = max(1, len(files) // LOOKED_AT)
    return choose_size([side for file in files[::step] if (side := _side(file))])


def _side(file: Path) -> int:
    try:
        return shorter_side(file.read_bytes())
    except OSError:
        return 0


def choose_size(sides: Sequence[int]) -> int:
    """The largest of SIZES that half of these images fill."""
    typical = float(np.median(sides)) if sides else SIZES[0]
    return max((size for size in SIZES if size <= typical), default=SIZES[0])


def shorter_side(data: bytes) -> int:
    """Pixels along the shorter side; 0 if it is not an image."""
    try:
        with _identified(data) as image:
            return min(image.size)
    except Exception:  # as above; the image is skipped when it is decoded
        return 0
