"""Standard output and errors that behave alike on every system.

What is piped or redirected is UTF-8 (a Windows pipe would be cp1252), and a reader that has seen
enough (`| head`) ends nothing: the rest is dropped, the command finishes with its own exit code.
On a terminal the terminal's encoding stays, and what it cannot show becomes a question mark.
"""

from __future__ import annotations

import contextlib
import io
import sys

from evenhand.systems import Pipe


def settle() -> None:
    """Put both streams in order; streams that a host put in their place are left alone."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.isatty():
            stream.reconfigure(errors="replace")
            continue
        with contextlib.suppress(OSError, ValueError):  # closed, or without a number
            stream.flush()
            setattr(sys, name, piped(stream.fileno()))


def piped(number: int) -> io.TextIOWrapper:
    """UTF-8 text to a file number, which stays open."""
    raw = io.BufferedWriter(Pipe(number, "wb", closefd=False))
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=number == 2)
