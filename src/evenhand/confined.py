"""Work on what somebody else wrote, confined to one folder.

    with confined(folder):
        ...                     # may read the folder and the installed code, and write the folder

Inside, this thread opens, lists, writes and removes nothing outside the folder, calls no server,
starts no process (nor a thread, which Python reports since 3.12), and loads no model. That is not a
list of precautions in every reader: Python reports such operations to an audit hook (PEP 578),
which refuses them. Where a library opens files without Python (Arrow), `require_inside` is called
first, and `refuse` where a model would be loaded or downloaded.
"""

from __future__ import annotations

import errno
import gc
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from evenhand.errors import RunError

WHY = "not a file of the bundle, and only those are read"
CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib")
"""Endings of files that Python imports, from wherever `sys.path` says."""
SYSTEM = {
    "/proc/self/maps",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/dev/null",
    "/dev/urandom",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
}
"""What libraries ask a system about itself; nothing of a user's is in it."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Outside(PermissionError):
    """Something outside the folder was to be used."""

    def __init__(self, path: object, why: str = WHY) -> None:
        super().__init__(errno.EACCES, why, str(path)[:200])


class _Here(threading.local):
    """The folder to which this thread is confined, as a real path; "" if it is not confined."""

    folder = ""
    asking = False
    """Whether the hook itself is at work."""


_HERE = _Here()


@contextmanager
def confined(folder: Path) -> Iterator[None]:
    """Confine this thread to a folder, which must exist."""
    _install()
    gc.freeze()  # what others left is not swept here, where their temporary folders stay
    before, _HERE.folder = _HERE.folder, os.path.realpath(folder)
    try:
        yield
    finally:
        _HERE.folder = before
        gc.unfreeze()


@contextmanager
def lifted() -> Iterator[None]:
    """Inside: not confined, for a model that the user gave."""
    before, _HERE.folder = _HERE.folder, ""
    try:
        yield
    finally:
        _HERE.folder = before


def is_confined() -> bool:
    """Return whether this thread is confined."""
    return bool(_HERE.folder)


def own_folder() -> Path | None:
    """Return where this thread may write, for temporary files; None for the usual place."""
    return Path(_HERE.folder) if _HERE.folder else None


def require_inside(path: object) -> None:
    """Refuse to open a file outside, for libraries that open files themselves.

    Raises:
        Outside: this thread is confined, and the path leads elsewhere.
    """
    if _HERE.folder and isinstance(path, str | bytes | os.PathLike):
        _require_readable(path)


def refuse(what: str) -> None:
    """Refuse what has no place in confined work.

    Raises:
        RunError: this thread is confined.
    """
    if _HERE.folder:
        raise RunError(f"{what[:200]}: the bundle asks for it, and nothing but its files is used.")


@cache
def _install() -> None:
    """Add the hook, once in a process; it cannot be taken away, and does nothing elsewhere."""
    _libraries()
    sys.addaudithook(_hook)


def _hook(event: str, values: tuple[Any, ...]) -> None:
    if not _HERE.folder or _HERE.asking:
        return
    check = CHECKS.get(event)
    if check is None:
        return
    _HERE.asking = True
    try:
        check(values)
    finally:
        _HERE.asking = False


def _opened(values: tuple[Any, ...]) -> None:
    path, mode, flags = values
    if path is None or isinstance(path, int):
        return  # what is open already was allowed
    writing = any(c in mode for c in "wxa+") if isinstance(mode, str) else False
    if writing or (isinstance(flags, int) and flags & WRITES):
        _require_own(path)
    else:
        _require_readable(path)


def _listed(values: tuple[Any, ...]) -> None:
    path = "." if values[0] is None else values[0]
    if isinstance(path, int):
        return
    place = _real(path)
    if place not in _search_path() and not _is_readable(place):
        raise Outside(path)


def _written(*which: int) -> Callable[[tuple[Any, ...]], None]:
    def check(values: tuple[Any, ...]) -> None:
        for k in which:
            _require_own(values[k])

    return check


def _forbidden(values: tuple[Any, ...]) -> None:
    raise Outside(values[0] if values else "", "a bundle leads to no server and to no program")


CHECKS: Mapping[str, Callable[[tuple[Any, ...]], None]] = {
    "open": _opened,
    "os.listdir": _listed,
    "os.scandir": _listed,
    **dict.fromkeys(
        (
            "os.mkdir",
            "os.remove",
            "os.rmdir",
            "os.truncate",
            "os.chmod",
            "os.chown",
            "os.utime",
            "os.setxattr",
            "os.removexattr",
            "os.chflags",
        ),
        _written(0),
    ),
    "os.rename": _written(0, 1),
    "os.link": _written(0, 1),
    "os.symlink": _written(1),
    **dict.fromkeys(
        (
            "socket.connect",
            "socket.bind",
            "socket.sendto",
            "socket.sendmsg",
            "socket.getaddrinfo",
            "socket.gethostbyname",
            "socket.gethostbyaddr",
            "socket.getnameinfo",
            "urllib.Request",
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.fork",
            "os.forkpty",
            "os.posix_spawn",
            "os.spawn",
            "os.startfile",
            "os.chdir",
            "os.fchdir",
            "sqlite3.connect",
            "pickle.find_class",
            "webbrowser.open",
            "_thread.start_new_thread",
        ),
        _forbidden,
    ),
}
"""What is checked, by the names of Python's audit events."""


def _real(path: Any) -> str:
    """The place that a path means in the end: links followed, relative to here."""
    return os.path.realpath(os.fsdecode(os.fspath(path)))


def _below(place: str, folder: str) -> bool:
    place, folder = os.path.normcase(place), os.path.normcase(folder)
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


def _require_own(path: Any) -> None:
    if isinstance(path, int) or not _below(_real(path), _HERE.folder):
        raise Outside(path, "outside of the bundle, where nothing is written or removed")


def _require_readable(path: Any) -> None:
    if os.fsdecode(os.fspath(path)) in SYSTEM:
        return
    if not _is_readable(_real(path)):
        raise Outside(path)


def _is_readable(place: str) -> bool:
    if _below(place, _HERE.folder) or any(_below(place, folder) for folder in _libraries()):
        return True
    if place.endswith(CODE) and any(_below(place, folder) for folder in _search_path()):
        return True
    return any(_below(place, folder) for folder in _packages())


@cache
def _libraries() -> tuple[str, ...]:
    """Where installed code lies with its data, evenhand's own (and its recipes) among it."""
    home = Path(__file__).resolve().parent
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = [sysconfig.get_path(name) for name in names]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    own = [str(home), str(home.parents[1] / "recipes")]
    return tuple(dict.fromkeys([*own, *(os.path.realpath(p) for p in found if p)]))


def _search_path() -> set[str]:
    return {os.path.realpath(p or ".") for p in sys.path}


def _packages() -> list[str]:
    """Folders of packages that this program has imported (plugins that are installed editable)."""
    tops = [module for name, module in list(sys.modules.items()) if "." not in name]
    places = (getattr(module, "__path__", None) for module in tops)
    texts = (p for place in places if place for p in list(place) if isinstance(p, str))
    return [os.path.realpath(p) for p in texts]
