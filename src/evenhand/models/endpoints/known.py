"""Which servers this user has named. No other one gets the key, or a question.

A run folder, a suite or a saved mitigation may come from somebody else, and names addresses. So an
address counts as named only when it was typed: on a command line, or given to a function. It is
then remembered in a file of this user, before the server is asked anything, so that a run can be
resumed without naming it again. The file holds addresses only, one per line; whoever removes a
line is asked again.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from evenhand.errors import ModelError
from evenhand.models.endpoints.address import Address, api_key
from evenhand.models.loading.cache import ours

FILE = "addresses.txt"
HEAD = "# Servers that you named to evenhand; they get your key. Remove a line to be asked again.\n"
LARGEST = 1 << 20
"""Bytes of the file that are read."""

_NAMED: set[str] = set()
"""Addresses named to this process, also where the file cannot be written."""


def state_folder() -> Path:
    """Return `$EVENHAND_STATE`, or `evenhand` where this system keeps the state of programs."""
    if chosen := os.environ.get("EVENHAND_STATE"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_state_path("evenhand", appauthor=False)


def remember(address: Address) -> None:
    """Record that the user named this address."""
    if not is_known(address):
        with contextlib.suppress(OSError):  # it is known to this process at least
            _write(address.base)
    _NAMED.add(address.base)


def is_known(address: Address) -> bool:
    """Return whether the user has named this address, now or earlier."""
    return address.base in _NAMED or address.base in _remembered()


def may_be_asked(address: Address) -> bool:
    """Return whether a server may be asked: it was named, or is on this machine and gets no key."""
    return is_known(address) or (is_loopback(address) and not api_key())


def require_known(address: Address, command: str = "") -> None:
    """Refuse a server that the user has not named.

    Args:
        command: the command that names it.

    Raises:
        ModelError: the address comes from a file and was never named.
    """
    if may_be_asked(address):
        return
    command = command or f"evenhand plan {address.base}"
    raise ModelError(
        f"{address.base}: this address comes from a file and you have not named it yet, so "
        f"neither your key nor a question is sent there. If you trust it, name it with: {command}"
    )


def is_loopback(address: Address) -> bool:
    """Return whether a server runs on this machine.

    >>> is_loopback(Address("http://127.0.0.1:8080/v1")), is_loopback(Address("http://h:1/v1"))
    (True, False)
    >>> is_loopback(Address("http://127.0.0.1.example.com/v1"))
    False
    """
    host = urlsplit(address.base).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _remembered() -> set[str]:
    """Read the addresses of earlier commands; none from a file that others could have written."""
    path = state_folder() / FILE
    try:
        if not (ours(path.parent) and ours(path)):
            return set()
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(LARGEST).splitlines()
    except OSError:
        return set()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def _write(base: str) -> None:
    """Append an address; one short write, so that two processes do not mix their lines."""
    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        head = HEAD if os.fstat(handle).st_size == 0 else ""
        os.write(handle, f"{head}{base}\n".encode())
    finally:
        os.close(handle)
