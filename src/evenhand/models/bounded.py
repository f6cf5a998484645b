"""Foreign templates, rendered within bounds: they are small programs.

transformers renders chat templates in a sandbox, from which nothing can be reached, but in which a
template may loop for hours or fill the memory. Inside `bounded` neither is possible: every line
that Python runs is watched, and the system gives no more memory than is allowed.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from evenhand.systems import SECONDS, Unbounded, memory_limit

MEBIBYTES = 512


@contextlib.contextmanager
def bounded(seconds: float | None = None, mebibytes: int = MEBIBYTES) -> Iterator[None]:
    """Inside: Python functions that are called are stopped after so much time or memory.

    >>> def endless():
    ...     while True:
    ...         pass
    >>> with bounded(seconds=0.05):
    ...     endless()
    Traceback (most recent call last):
    evenhand.systems.Unbounded: takes more than 0.05 seconds
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
