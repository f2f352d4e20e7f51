"""Peak memory of a scan of 50,000 images of CIFAR-10's size, as Parquet with encoded images: one epoch of each fold."""

import io
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

NUM_IMAGES = 50_000


def measure() -> dict[str, Any]:
    """Print and return the peak, in MiB."""
    with tempfile.TemporaryDirectory() as temporary:
        _write(Path(temporary) / "images.parquet")
        words = [
            sys.executable,
            "-m",
            "undermargin",
            "scan",
            f"{temporary}/images.parquet",
            "--out",
            f"{temporary}/scan",
        ]
        subprocess.run([*words, "--epochs", "1", "--quiet", "--jobs", "1"], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{NUM_IMAGES} images, one fold after the other: peak {peak:.0f} MiB")
    return {"num_images": NUM_IMAGES, "peak_mib": peak}


def _write(path: Path) -> None:
    """Smooth random images, so that they take as many bytes as photos do."""
    rng = np.random.default_rng(0)
    images = []
    for _ in range(NUM_IMAGES):
        small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        data = io.BytesIO()
        small.resize((32, 32), Image.Resampling.BILINEAR).save(data, "PNG")
        images.append({"bytes": data.getvalue(), "path": None})
    table = pa.table({"image": images, "label": np.arange(NUM_IMAGES) % 10})
    pq.write_table(table, path)
