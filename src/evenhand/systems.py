"""What differs between Linux, macOS and Windows, in one place.

host()          this machine's name, as it stands in names of temporary files
alive(pid)      whether a process runs here
locked(path)    hold a lock file; it dies with the process, so it is never stale
is_locked(path) whether somebody holds it
peak_mib()      the largest memory of this process
link(a, b)      make a file appear under a second name
alarmed()       stop a regular expression that does not end
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import platform
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""How long code of strangers (a template, a regular expression) may run at a time."""
LOOKING_S = 0.5
"""How long a writer waits for a lock: whoever only looks (`is_locked`) holds it for an instant."""
RENAMING = 20
"""How often a file is put in place again where another process has it open (Windows refuses)."""

GONE = {errno.EPIPE, *([errno.EINVAL] if os.name == "nt" else [])}
"""What writing to a pipe says when nobody reads it any more."""


class Pipe(io.FileIO):
    """A file that goes on taking bytes when its reader is gone."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if error.errno not in GONE:
                raise
            return memoryview(data).nbytes


def host() -> str:
    """The machine's name.

    >>> host() == platform.node()
    True
    """
    return platform.node()


def alive(process: int) -> bool:
    """Whether a process of that number runs on this machine; never sends it a signal.

    >>> alive(os.getpid()), alive(10**30)
    (True, False)
    """
    import psutil

    try:
        return bool(psutil.pid_exists(process))
    except (OverflowError, ValueError):  # no such number can exist
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Inside: this process holds the lock file, if True is given; else somebody else does.

    flock on Linux and macOS (as earlier versions did, which are kept out, too), a locked byte on
    Windows. The file stays where it is.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(str(path))
    try:
        lock.acquire(timeout=LOOKING_S, poll_interval=0.05)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock file; assumed where that cannot be told."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    try:
        with FileLock(str(path)).acquire(timeout=0):
            return False
    except (Timeout, OSError):
        return True


def peak_mib() -> int:
    """The largest memory this process has had, in MiB; what it has now where nobody counts.

    Windows keeps a peak for each process. Elsewhere the standard library knows it, in bytes on
    macOS and in KiB on Linux.

    >>> 1 < peak_mib() < 10**6
    True
    """
    import psutil

    memory = psutil.Process().memory_info()
    peak = int(getattr(memory, "peak_wset", 0))
    with contextlib.suppress(ImportError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return max(peak, int(memory.rss)) // 2**20


def put_in_place(draft: Path, path: Path) -> None:
    """Rename a file over another. Windows refuses while a reader has that open: try again."""
    for left in reversed(range(RENAMING)):
        try:
            os.replace(draft, path)
            return
        except PermissionError:
            if os.name != "nt" or not left:
                raise
            time.sleep(0.05)


def sync_folder(folder: Path) -> None:
    """Make sure that a new name in the folder survives a power cut, where folders can be synced."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def link(source: Path, name: Path) -> None:
    """Let a file appear under another name: a link where one may be made, else a copy."""
    for make in (os.symlink, os.link):
        with contextlib.suppress(OSError):
            make(source, name)
            return
    shutil.copyfile(source, name)


def user() -> int | None:
    """The number of the user; None where users have no numbers (Windows)."""
    return os.getuid() if hasattr(os, "getuid") else None


@contextlib.contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Inside: the process gets so many bytes more, where the system can be told so."""
    try:
        import resource
    except ImportError:  # Windows: time is the only bound there
        yield
        return
    import psutil

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + more
    known = [v for v in (soft, hard) if v != resource.RLIM_INFINITY]
    try:
        resource.setrlimit(resource.RLIMIT_AS, (min([most, *known]), hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Unbounded(ValueError):
    """Code that does not end, or fills the memory."""


class _Late(BaseException):
    """The time is over; nothing on the way may take it for an error of its own."""


@contextlib.contextmanager
def alarmed(seconds: float | None = None) -> Iterator[None]:
    """Inside: a regular expression that does not end is stopped, which no trace can see.

    By a signal, so in the main thread of Linux and macOS only; seconds of the processor. Inside
    another one it does nothing: the time that was set first holds.
    """
    seconds = SECONDS if seconds is None else seconds
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
        or signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    ):
        yield
        return

    def late(*_: Any) -> None:
        raise _Late

    usual = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _Late:
        raise Unbounded(f"takes more than {seconds:g} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, usual)
