"""Foreign templates, rendered within bounds: they are small programs.

transformers renders chat templates in a sandbox, from which nothing can be reached, but in which a
template may loop for hours or fill the memory. Inside `bounded` neither is possible: every line
that Python runs is watched, and the system gives no more memory than is allowed.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from evenhand.systems import memory_limit

SECONDS = 10.0
MEBIBYTES = 512


class Unbounded(ValueError):
    """Code that does not end, or fills the memory."""


@contextlib.contextmanager
def bounded(seconds: float | None = None, mebibytes: int = MEBIBYTES) -> Iterator[None]:
    """Inside: Python functions that are called are stopped after so much time or memory.

    >>> def endless():
    ...     while True:
    ...         pass
    >>> with bounded(seconds=0.05):
    ...     endless()
    Traceback (most recent call last):
    evenhand.models.bounded.Unbounded: takes more than 0.05 seconds
    """
    seconds = SECONDS if seconds is None else seconds
    end = time.monotonic() + seconds

    def watch(frame: Any, event: str, given: Any) -> Any:
        if time.monotonic() > end:
            raise Unbounded(f"takes more than {seconds:g} seconds")
        return watch

    usual = sys.gettrace()
    with memory_limit(mebibytes << 20):
        sys.settrace(watch)
        try:
            yield
        except MemoryError as error:
            raise Unbounded(f"takes more than {mebibytes} MiB of memory") from error
        finally:
            sys.settrace(usual)


class _Late(BaseException):
    """The time is over; nothing on the way may take it for an error of its own."""


@contextlib.contextmanager
def alarmed(seconds: float | None = None) -> Iterator[None]:
    """Inside: a regular expression that does not end is stopped, which no trace can see.

    By a signal, so in the main thread of Linux and macOS only; seconds of the processor.
    """
    seconds = SECONDS if seconds is None else seconds
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def late(*_: Any) -> None:
        raise _Late

    usual = signal.signal(signal.SIGVTALRM, late)
    left, every = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _Late:
        raise Unbounded(f"takes more than {seconds:g} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, left, every)
        signal.signal(signal.SIGVTALRM, usual)
