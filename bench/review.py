"""The review's page before a large scan: seconds until it can be used, milliseconds until the next sample is there.

A hundred thousand photos of 1024 x 768 pixels in class folders, five thousand of them flagged; a real browser
(chromium) on the same machine. Asked: interactive in under 1 s, the next sample in under 50 ms.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from undermargin.scans.folder import Folder
from undermargin.verdicts.record import FLAGGED, KEPT, Verdicts

NUM_SAMPLES, NUM_FLAGGED, NUM_CLASSES, NUM_PHOTOS = 100_000, 5_000, 10, 100
NUM_LOADS, NUM_STEPS, LOOK_SECONDS = 7, 60, 0.4
NEXT = """() => new Promise((done) => {
    const before = document.querySelector('.one').dataset.index;
    const started = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
    const look = () => {
        const image = document.querySelector('.stage img');
        const isNext = document.querySelector('.one').dataset.index !== before;
        const isThere = isNext && image?.complete && image.naturalWidth;
        if (isThere) requestAnimationFrame(() => done(performance.now() - started));
        else setTimeout(look, 0);
    };
    look();
})"""


def measure() -> dict[str, Any]:
    """Print and return the numbers."""
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("UNDERMARGIN_BROWSER") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as root, sync_playwright() as started:
        folder = _make(Path(root))
        began = time.perf_counter()
        server, address = _serve(folder)
        start_seconds = time.perf_counter() - began
        browser = started.chromium.launch(executable_path=browser_path, args=["--headless", "--no-sandbox"])
        try:
            loads, steps = [], []
            for _ in range(NUM_LOADS):
                page = browser.new_context().new_page()
                page.goto(address)
                page.wait_for_selector("main[aria-busy=false]")
                loads.append(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
            for _ in range(NUM_STEPS):
                time.sleep(LOOK_SECONDS)  # somebody looks
                steps.append(page.evaluate(NEXT))
        finally:
            browser.close()
            server.terminate()
            server.wait()
    found = {
        "server_start_seconds": start_seconds,
        "interactive_ms": {"median": statistics.median(loads), "worst": max(loads)},
        "next_ms": {
            "median": statistics.median(steps),
            "p95": sorted(steps)[int(0.95 * len(steps))],
            "worst": max(steps),
        },
    }
    print(f"{NUM_SAMPLES:,} photos, {NUM_FLAGGED:,} flagged; the server starts in {start_seconds:.1f} s")
    print("interactive after {median:.0f} ms (worst of 7: {worst:.0f}; asked: 1000)".format(**found["interactive_ms"]))
    print("next sample in {median:.0f} ms (p95 {p95:.0f}, worst {worst:.0f}; asked: 50)".format(**found["next_ms"]))
    return found


def _make(root: Path) -> Folder:
    """Photos that differ, each under many names; a scan's folder without a training."""
    rng = np.random.default_rng(0)
    photos = root / "photos"
    ids = [f"class{n % NUM_CLASSES}/{n:06}.jpg" for n in range(NUM_SAMPLES)]
    for number in range(NUM_CLASSES):
        (photos / f"class{number}").mkdir(parents=True)
    for number in range(NUM_PHOTOS):
        coarse = rng.integers(0, 255, (24, 32, 3), np.uint8)
        Image.fromarray(coarse).resize((1024, 768), Image.Resampling.BICUBIC).save(root / f"{number}.jpg", quality=85)
    for number, name in enumerate(ids):
        os.link(root / f"{number % NUM_PHOTOS}.jpg", photos / name)
    codes = np.full(NUM_SAMPLES, KEPT, np.int8)
    codes[rng.choice(NUM_SAMPLES, NUM_FLAGGED, replace=False)] = FLAGGED
    scores = np.where(codes == FLAGGED, -1, 1) + rng.random(NUM_SAMPLES)
    labels = np.arange(NUM_SAMPLES) % NUM_CLASSES
    verdicts = Verdicts(
        codes,
        scores,
        scores,
        np.full(NUM_SAMPLES, 2, np.int16),
        labels=labels,
        ids=ids,
        class_names=[f"class{number}" for number in range(NUM_CLASSES)],
        suggested_labels=np.where(codes == FLAGGED, (labels + 1) % NUM_CLASSES, labels),
        suggestion_confidence=rng.random(NUM_SAMPLES),
    )
    folder = Folder(root / "scan")
    folder.path.mkdir()
    source = {"path": str(photos), "format": "class folders"}
    folder.write_json("config.json", {"source": source, "kind": "images", "fingerprint": "bench"})
    folder.save_verdicts(verdicts)
    return folder


def _serve(folder: Folder) -> tuple[subprocess.Popen[str], str]:
    words = ["review", str(folder.path), "--no-open", "--port", "0", "--yes"]
    environment = os.environ | {"XDG_STATE_HOME": str(folder.path.parent / "state")}
    server = subprocess.Popen(
        [sys.executable, "-m", "undermargin", *words], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://\S+", line):
            return server, found[0]
    raise RuntimeError("the server did not start")
