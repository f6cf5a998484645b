"""The local web app over run folders: it only reads, and only this machine can reach it.

Every request must pass these rules: only GET and HEAD; only requests addressed to this machine by
name (so that another page cannot reach the viewer through a rebound domain name); no other Origin;
no framing, no sniffing, no scripts but the viewer's own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from evenhand.errors import RunError, need

LOCAL = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; sandbox allow-scripts; frame-ancestors 'none'"
)
"""Policy of the report page, whose scripts are inline and in a sandbox without network."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def refusal(method: str, headers: dict[str, str]) -> tuple[int, str] | None:
    """Return status and reason if a request must be refused, or None.

    >>> refusal("GET", {"host": "evil.example"})
    (403, 'the viewer answers only on this machine (127.0.0.1 or localhost)')
    >>> refusal("GET", {"host": "localhost:8000"}) is None
    True
    """
    if method not in ("GET", "HEAD"):
        return 405, "the viewer only reads: GET and HEAD"
    host = headers.get("host", "")
    if not _local(host):
        return 403, "the viewer answers only on this machine (127.0.0.1 or localhost)"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return 403, "requests from other pages are refused"
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        fetched = headers.get("sec-fetch-mode") == "navigate"
        if not fetched:
            return 403, "requests from other pages are refused"
    return None


def _local(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, ""
    return name in LOCAL and (not port or port.isdigit())


class Guard:
    """ASGI middleware that checks requests and adds security headers."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                known = {k.lower() for k, _ in message.get("headers", [])}
                more = {**HEADERS, "content-security-policy": POLICY}
                message["headers"] = list(message.get("headers", [])) + [
                    (k.encode(), v.encode()) for k, v in more.items() if k.encode() not in known
                ]
            await send(message)

        refused = refusal(scope["method"], headers)
        if refused is None:
            await self.app(scope, receive, guarded)
            return
        status, why = refused
        body = f"{why}\n".encode()
        head = [(b"content-type", b"text/plain; charset=utf-8")]
        if status == 405:
            head.append((b"allow", b"GET, HEAD"))
        await guarded({"type": "http.response.start", "status": status, "headers": head})
        await guarded({"type": "http.response.body", "body": body})


ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a socket on 127.0.0.1; port 0 takes a free one.

    Raises:
        RunError: the port is taken.
    """
    wanted = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    wanted.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        wanted.bind((ADDRESS, port))
    except OSError as error:
        wanted.close()
        raise RunError(
            f"port {port} cannot be used ({error.strerror}). Take any free one with: "
            f"evenhand view --port 0"
        ) from error
    return wanted


class Server:
    """The viewer over a folder; `with Server(...) as server` runs it in a thread."""

    def __init__(self, root: Path, port: int = 0, runnable: Callable[[str], str] = str) -> None:
        uvicorn: Any = need("uvicorn", extra="web", what="the viewer")
        need("starlette", extra="web", what="the viewer")
        from evenhand.viewer.app import make_app

        self.socket = listen(port)
        self.port = int(self.socket.getsockname()[1])
        self.address = f"http://{ADDRESS}:{self.port}/"
        config = uvicorn.Config(
            make_app(root, runnable),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until interrupted."""
        self.server.run(sockets=[self.socket])

    def __enter__(self) -> Server:
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            self._thread.join(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(10)
        self.socket.close()
