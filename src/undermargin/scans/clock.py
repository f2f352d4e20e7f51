"""How long a scan has taken over all its starts, kept in a file: a kill loses a second at most."""

import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from undermargin.storage.files import replacing

Event = TypeVar("Event")

SAVED_EVERY = 1.0  # seconds


class Clock:
    """Seconds of a scan; continues from what the last start wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started = self.saved = time.perf_counter()
        self.before = 0.0
        with suppress(OSError, ValueError, KeyError, TypeError):  # a damaged file costs a number, not the scan
            before = float(json.loads(path.read_text())["seconds"])
            self.before = before if math.isfinite(before) else 0.0

    @property
    def seconds(self) -> float:
        """Total of all starts."""
        return self.before + time.perf_counter() - self.started

    def ticking(self, call: Callable[[Event], None]) -> Callable[[Event], None]:
        """The same call, which also saves the time if the last save is more than a second ago."""

        def tick(event: Event) -> None:
            if time.perf_counter() - self.saved >= SAVED_EVERY:
                self.save()
            call(event)

        return tick

    def save(self) -> None:
        """Write the time to the file."""
        self.saved = time.perf_counter()
        with replacing(self.path) as partial:
            partial.write_text(json.dumps({"seconds": round(self.seconds, 1)}) + "\n")
