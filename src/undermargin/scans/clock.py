"""How long a scan has taken over all of its starts: kept in a file, so that a kill loses a second at most."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from undermargin.storage.files import replacing

Event = TypeVar("Event")

SAVED_EVERY = 1.0  # seconds


class Clock:
    """Goes on from where the last start left it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started = self.saved = time.perf_counter()
        self.before = 0.0
        with suppress(FileNotFoundError, ValueError):  # a damaged file costs a number, not the scan
            self.before = float(json.loads(path.read_text())["seconds"])

    @property
    def seconds(self) -> float:
        """Of all starts together."""
        return self.before + time.perf_counter() - self.started

    def ticking(self, call: Callable[[Event], None]) -> Callable[[Event], None]:
        """The same call, at which the time is written down, unless that was done a moment ago."""

        def tick(event: Event) -> None:
            if time.perf_counter() - self.saved >= SAVED_EVERY:
                self.save()
            call(event)

        return tick

    def save(self) -> None:
        """Write the time down."""
        self.saved = time.perf_counter()
        with replacing(self.path) as partial:
            partial.write_text(json.dumps({"seconds": round(self.seconds, 1)}) + "\n")
