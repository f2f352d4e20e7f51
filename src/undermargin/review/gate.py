"""Who gets in: the browser that opened the printed address, and nobody through another site.

Others may share the machine, so every request needs the token of this start, as part of the address at first and as a
cookie from then on. A foreign Host is a name that somebody has pointed at this machine (DNS rebinding), a foreign
Origin is another page at work in the same browser.
"""

import ipaddress
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """Around the app: turns away whoever does not belong, and sends the headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, *, token: str, host: str) -> None:
        self.app = app
        self.token = token
        self.host = host
        # cookies are shared by all ports of a host: each start has a name of its own
        self.cookie = f"undermargin-{token[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        is_new = self._has_token(scope)
        refusal = self._refusal(Headers(scope=scope), is_new)
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if is_new and not refusal:
                    headers.append("Set-Cookie", f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        inner = PlainTextResponse(f"{refusal}\n", status_code=403) if refusal else self.app
        await inner(scope, receive, guarded)

    def _refusal(self, headers: Headers, is_new: bool) -> str | None:
        """Why a request is turned away, if it is."""
        host = headers.get("host", "")
        if not is_own_host(host, self.host):
            return f"This page is not served under the name {host}."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f"Requests from {origin} are not taken."
        if not is_new and not self._has_cookie(headers):
            return "Open the address that 'undermargin review' printed; it holds a token, new for every start."
        return None

    def _has_token(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return self._is_token(given)

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self._is_token(found.value)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def is_own_host(header: str, host: str) -> bool:
    """Whether a Host header names this machine as the server was told to call it, on any port: tunnels change ports.

    >>> is_own_host("localhost:9000", "127.0.0.1"), is_own_host("evil.example:8765", "127.0.0.1")
    (True, False)
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    if host not in WILDCARDS:
        return name in LOOPBACK or name == host.lower()
    return name in LOOPBACK or _is_address(name)  # a name could be pointed here by anybody, an address cannot


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
