"""The local server: one scan, one address with a token in it."""

import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from undermargin.errors import InputError
from undermargin.review.app import make_app
from undermargin.review.cards import Cards
from undermargin.review.gate import Gate
from undermargin.review.progress import LAST, progress
from undermargin.scans.folder import Folder
from undermargin.sources.base import Source
from undermargin.storage import consent as roots

PORT = 8765  # taken where it is free, so that a tunnel to it can be kept


def serve(
    folder: Folder,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    data: Path | None = None,
    confirm: Callable[[Path], bool],
    on_start: Callable[[str], None],
) -> dict[str, Any]:
    """Serve a scan's page until it is stopped, and say how far the review has come.

    `confirm` is asked whether data may be shown that were not scanned here; `on_start` gets the page's address.
    """
    verdicts = folder.verdicts()
    originals = folder.originals(verdicts, data)
    _check(folder, originals, confirm, is_named=data is not None)
    cards = Cards(verdicts, originals)
    originals.prepare()  # data that have changed since the scan are refused here, not on the page
    token = secrets.token_urlsafe(24)
    with _listen(host, port) as listening:
        address = f"http://{_named(host)}:{listening.getsockname()[1]}/?token={token}"
        decisions = folder.decisions()
        gate = Gate(make_app(folder, verdicts, cards, decisions), token=token, host=host)
        config = uvicorn.Config(gate, log_level="warning", access_log=False, server_header=False, lifespan="off")
        try:
            with suppress(KeyboardInterrupt):  # how it is stopped
                on_start(address)  # the socket listens already: whoever comes now is answered in a moment
                uvicorn.Server(config).run(sockets=[listening])
            return progress(verdicts, decisions.latest(), decisions.times(LAST))
        finally:
            decisions.close()


def _check(folder: Folder, originals: Source, confirm: Callable[[Path], bool], *, is_named: bool) -> None:
    """Data are shown if they are there, and if this user scanned them here, named them, or says yes."""
    path = originals.path
    if path is None:
        raise InputError(
            "the data were scanned from memory, so there is nothing to show; write them down and scan that"
        )
    if not path.exists():
        raise InputError(f"there is nothing at {path}, where the data were; say where they are now with --data")
    if not is_named and not roots.is_confirmed(folder.path, path) and not confirm(path):
        raise InputError(f"{path} was not scanned here by this user and is not shown without --yes or --data {path}")
    roots.confirm(folder.path, path)


def _listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a wish for a port, the usual one, or any that is free."""
    for wanted in (PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((host, wanted), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except (OSError, OverflowError) as error:
            failure = error
    raise InputError(f"cannot listen on {host}, port {port}: {failure}; choose another with --port") from None


def _named(host: str) -> str:
    """How a browser on this machine calls it."""
    if host in ("0.0.0.0", "127.0.0.1"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
