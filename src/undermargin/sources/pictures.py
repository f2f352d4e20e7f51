"""Single images: from bytes to pixels, whatever their mode, orientation and size."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
SIZES = (32, 64)  # a side, in pixels; larger photos are made smaller
MAX_SKIPPED_SHARE = 0.2  # more unreadable images than this are an error
LOOKED_AT = 64  # images whose size is looked at before choosing one


def decode(data: bytes, size: int) -> npt.NDArray[np.uint8]:
    """Pixels (size, size, 3) of an image, its middle cut out where it is not square."""
    from PIL import Image, ImageOps

    return np.asarray(ImageOps.fit(open_image(data), (size, size), Image.Resampling.BILINEAR))


def open_image(data: bytes) -> "Image.Image":
    """The first frame, upright, in RGB, without transparency; an unreadable image is an error."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            upright = ImageOps.exif_transpose(image)
            if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
                paper = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(paper, upright.convert("RGBA"))
            return upright.convert("RGB")
    except UnidentifiedImageError:
        raise InputError("not an image") from None
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, MemoryError) as error:
        raise InputError(f"damaged image: {' '.join(str(error).split())}") from None


def common_size(files: Sequence[Path], image_size: int | None) -> int:
    """The side to which images are brought: as asked, or the largest of SIZES that most of them fill."""
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
    """Pixels along the shorter side; 0 for what is no image."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return min(image.size)
    except (OSError, ValueError, SyntaxError):
        return 0
