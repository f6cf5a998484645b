"""Serving the viewer on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.errors import RunError, need

ADDRESS = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes a free one.

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
