"""Which Ray cluster is meant, and whether it lets us in: settled before a model is loaded.

Ray itself answers badly to mistakes here. With nobody at the address it ends the whole process, at
a port of another program it waits 40 seconds, and a cluster that wants a token is reported as one
that cannot be reached. Without an address it joins the cluster noted last on this machine, also
when that one is gone. So every such case is looked at first, and told in one paragraph.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import secrets
import socket
import subprocess
import sys
from typing import Any

from evenhand.errors import MissingExtra, RunError, SpecError

ADDRESS = re.compile(r"auto|local|ray://\S+|[^\s:/\[\]]+:\d+|\[[0-9A-Fa-f:.%\w]+\]:\d+")
TOKENS = "ray._private.authentication.authentication_token_setup"
PATIENCE_S = 5
HEALTH_S = 60
# What a caller of HTTP/2, on which Ray's control process is built, says first: the preface and an
# empty frame of settings. The other side answers with a frame of settings (type 4) of its own.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SETTINGS_FRAME = 4


def meant(address: str | None) -> str | None:
    """The address that counts: the one given, else RAY_ADDRESS, else None (start Ray here).

    >>> meant("head:6379")
    'head:6379'
    """
    chosen = address if address is not None else os.environ.get("RAY_ADDRESS") or None
    return None if chosen == "local" else chosen


def knock(ray: Any, address: str | None) -> None:
    """Raise a clear error when the address is none, nobody answers there, or a token is wanted."""
    chosen = meant(address)
    if chosen is None:
        return
    given = f"--address {chosen!r}" if address is not None else f"RAY_ADDRESS={chosen!r}"
    if not ADDRESS.fullmatch(chosen):
        raise SpecError(
            f"{given}: expected HOST:PORT as `ray start --head` prints it ([HOST]:PORT for IPv6), "
            f"or auto for the cluster of this machine."
        )
    if chosen.startswith("ray://"):
        _client(chosen, given)
        return
    found = chosen == "auto"
    place = _of_this_machine(ray, chosen) if found else chosen
    _answers(place)
    _lets_us_in(ray, place, given, found=found)


def start_private() -> None:
    """Before Ray is started here: let its cluster have a token that lives as long as it does.

    Ray would else write one to ~/.ray/auth_token, and from then on every `ray start --head` of this
    user makes a cluster that refuses whoever names it by its address.
    """
    if not (os.environ.get("RAY_AUTH_MODE") or os.environ.get("RAY_AUTH_TOKEN_PATH")):
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))


def nobody(address: str | None, why: object) -> RunError:
    return RunError(
        f"no Ray cluster answers at {address!r} ({why}). Start one with: ray start --head"
    )


def _of_this_machine(ray: Any, address: str) -> str:
    """Where `auto` leads: the note of the last `ray start`, or a control process found running."""
    try:
        found = ray._private.services.canonicalize_bootstrap_address(address)
    except ConnectionError as error:
        raise nobody(address, str(error).split(". ")[0]) from error
    return str(found)


def _answers(place: str) -> None:
    host, _, port = place.rpartition(":")
    try:
        number = int(port)
        with socket.create_connection((host.strip("[]"), number), timeout=PATIENCE_S) as line:
            if os.environ.get("RAY_USE_TLS") == "1":
                return  # encrypted from the first byte
            line.sendall(GREETING)
            heard = line.recv(9)
    except (OSError, OverflowError) as error:
        raise nobody(place, error) from error
    if len(heard) < 4 or heard[3] != SETTINGS_FRAME:
        raise nobody(place, "another program uses this port")


def _lets_us_in(ray: Any, place: str, given: str, *, found: bool) -> None:
    """Ask the control process for its name, as `ray health-check` does, by Ray's rule of tokens.

    A saved token is sent to a cluster that was found on this machine, and to an address given by
    hand only when RAY_AUTH_MODE says so: it would else go to whoever listens there. A cluster that
    has no token lets a driver with one in, and then never starts its workers.
    """
    try:
        tokens: Any = importlib.import_module(TOKENS)
    except ImportError:
        return  # a Ray that knows no tokens
    try:
        if found and "RAY_AUTH_MODE" not in os.environ and _is_open(place):
            os.environ["RAY_AUTH_MODE"] = "disabled"  # else a saved token would be sent
        elif found:
            tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        tokens.ensure_token_if_auth_enabled(None, create_token_if_missing=False)
        ray._raylet.GcsClient(address=place)
    except ray.exceptions.AuthenticationError as error:
        raise RunError(_token_wanted(given)) from error
    except ray.exceptions.RpcError as error:
        raise nobody(place, str(error).split(". ")[0]) from error
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token" and _is_open(place):
        raise RunError(
            f"{given}: the Ray cluster has no token, and RAY_AUTH_MODE=token sends it one, with "
            "which its workers never start. Run: unset RAY_AUTH_MODE   (or start the cluster with "
            "the token)"
        )


def _is_open(place: str) -> bool:
    """Whether the cluster answers without a token.

    In a process of its own, since Ray settles once per process whether it sends one.
    """
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", place]
    env = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=HEALTH_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _client(address: str, given: str) -> None:
    """Ray's client has a port and a protocol of its own, and needs grpc."""
    if importlib.util.find_spec("grpc") is None:
        raise MissingExtra(
            f"{given}: Ray's client is not installed. Run: pip install 'ray[client]'"
        )
    host, _, port = address.removeprefix("ray://").split("?")[0].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
    except (OSError, OverflowError, ValueError) as error:
        raise nobody(address, error) from error


def _token_wanted(given: str) -> str:
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
        return (
            f"{given}: the Ray cluster asks for a token, and there is none here or it is another "
            f"cluster's. Print the right one on the head with `ray get-auth-token` and put it into "
            f"RAY_AUTH_TOKEN, or a file with it into RAY_AUTH_TOKEN_PATH."
        )
    return (
        f"{given}: the Ray cluster asks for a token, which Ray does not send to an address given "
        "by hand unless told to (a cluster asks when ~/.ray/auth_token is there when it starts). "
        "If the cluster is yours, run: export RAY_AUTH_MODE=token"
    )
