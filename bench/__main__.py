"""python -m bench [SECTION ...]: print measurements; --store appends them to bench/results.jsonl."""

import argparse
import json
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import undermargin
from bench import digits, loop, memory, recipes, report, review, scale, update

SECTIONS = {
    "update": update.measure,
    "scale": scale.measure,
    "loop": loop.measure,
    "report": report.measure,
    "memory": memory.measure,
    "digits": digits.measure,
    "review": review.measure,
    "recipes": recipes.measure,
}
DEFAULT = (
    "update",
    "scale",
    "loop",
    "report",
    "recipes",
)  # digits and memory take a quarter of an hour, review needs a browser
RESULTS = Path(__file__).parent / "results.jsonl"


def main() -> None:
    """Run the sections named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", default=DEFAULT, help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--store", action="store_true", help=f"append the results to {RESULTS.name}")
    arguments = parser.parse_args()
    for name in arguments.sections:
        print(f"\n{name}\n{'-' * len(name)}")
        started, code = time.perf_counter(), commit()  # before: the tree may move on during a long run
        results = SECTIONS[name]()
        if arguments.store:
            store(name, results, time.perf_counter() - started, code)


def store(section: str, results: dict[str, Any], seconds: float, code: str) -> None:
    """Append one line that says what was measured, with what, and at which commit."""
    line = {
        "section": section,
        "results": results,
        "seconds": round(seconds, 1),
        "commit": code,
        "versions": {
            "undermargin": undermargin.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "machine": {"cpu": platform.machine(), "num_threads": torch.get_num_threads()},
    }
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")


def commit() -> str:
    """The commit that is checked out, marked where the code differs from it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return f"{head}-dirty" if _git("status", "--porcelain", "--", "../src", "*.py") else head or "unknown"


def _git(*words: str) -> str:
    result = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return result.stdout.strip()


if __name__ == "__main__":
    main()
