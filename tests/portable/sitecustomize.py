"""A machine without `fcntl`, `resource`, `os.uname` and `/proc`, as far as our code can tell.

Put this folder on PYTHONPATH (`make test-portable` does): Python imports it before anything else,
in every child process, too. Our code and our tests find neither the modules nor the files; the
libraries that exist to know each system (psutil, filelock, the standard library) keep theirs.
"""

from __future__ import annotations

import builtins
import os
import sys
import sysconfig
import types

GONE = {"fcntl", "resource", "termios", "pwd", "grp"}
PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
OF_PYTHON = (sysconfig.get_paths()[name] for name in PLACES)
FOREIGN = (os.path.dirname(os.__file__), "<frozen", *OF_PYTHON)
_import = builtins.__import__


def _ours(frame: object) -> bool:
    """Whether the nearest code that is no library's is what asks directly."""
    file = getattr(getattr(frame, "f_code", None), "co_filename", "")
    return file != __file__ and not file.startswith(FOREIGN)


def without(name: str, globals=None, locals=None, fromlist=(), level=0):  # type: ignore[no-untyped-def]
    if name in GONE and _ours(sys._getframe(1)):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _import(name, globals, locals, fromlist, level)


def watch(event: str, given: tuple[object, ...]) -> None:
    """Refuse to open or list what lies below /proc, unless a library asks on its own behalf."""
    if event not in ("open", "os.listdir", "os.scandir") or not given:
        return
    place = os.fsdecode(given[0]) if isinstance(given[0], str | bytes) else ""
    if not place.startswith("/proc"):
        return
    frame = sys._getframe(1)
    standard = os.path.dirname(os.__file__)
    while frame is not None and "site-packages" not in frame.f_code.co_filename:
        file = frame.f_code.co_filename
        if not file.startswith((standard, "<frozen")) and file != __file__:
            raise FileNotFoundError(2, "No such file or directory", place)
        frame = frame.f_back  # type: ignore[assignment]


class Portable(types.ModuleType):
    """The module `os` of a system that has no `uname`; libraries that know Linux still see it."""

    def __getattr__(self, name: str) -> object:
        if name == "uname" and not _ours(sys._getframe(1)):
            return _uname
        raise AttributeError(f"module 'os' has no attribute {name!r}")


builtins.__import__ = without
sys.addaudithook(watch)
if hasattr(os, "uname"):
    _uname = os.uname
    del os.uname
    os.__class__ = Portable
