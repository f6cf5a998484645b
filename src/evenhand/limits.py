"""How much is read of files that others made, and how to read more.

    text       bytes of a file that is read at once, unpacked: JSON, TOML, small tables
    line       bytes of one line
    ratio      how many times its own size a packed file may unpack to, beyond 4 MiB
    array      bytes of one array
    answer     bytes of one answer of a server, unpacked
    depth      lists and objects inside one another
    seconds    time spent reading one packed file

Each message of a limit names it, its size, and what to set where a file rightly has more:

    EVENHAND_LIMITS=text=1GiB,depth=500 evenhand measure ...
"""

from __future__ import annotations

import io
import os
import re
import time
from itertools import count
from typing import IO, Any

from evenhand.errors import DataError, SpecError

VARIABLE = "EVENHAND_LIMITS"
DEFAULTS = {
    "text": 256 << 20,
    "line": 64 << 20,
    "ratio": 50,
    "array": 16 << 30,
    "answer": 16 << 20,
    "depth": 200,
    "seconds": 3600,
}
SIZES = ("text", "line", "array", "answer")
INSIDE = frozenset((dict, list))
"""What values stand in."""
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SLACK = 4 << 20
"""Bytes that any packed file may unpack to."""


def limit(name: str) -> int:
    """A limit, as EVENHAND_LIMITS sets it or by default.

    >>> limit("depth")
    200
    """
    given = os.environ.get(VARIABLE)
    return _given(given)[name] if given else DEFAULTS[name]


def _given(text: str) -> dict[str, int]:
    found = dict(DEFAULTS)
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, size = part.partition("=")
        read = re.fullmatch(r"(\d{1,15})([KMGT]iB)?", size)
        if name not in DEFAULTS or read is None:
            raise SpecError(
                f"{VARIABLE}: {part!r}: expected NAME=NUMBER, such as text=1GiB. Names: "
                f"{', '.join(DEFAULTS)}."
            )
        found[name] = int(read[1]) * UNITS[read[2] or ""]
    return found


def shown(name: str) -> str:
    """A limit for people.

    >>> shown("text")
    '256 MiB'
    """
    size = limit(name)
    if name not in SIZES:
        return f"{size:,}"
    unit = next(u for u in ("TiB", "GiB", "MiB", "KiB", "") if not size % UNITS[u])
    return f"{size // UNITS[unit]:,} {unit or 'bytes'}"


def beyond(where: object, what: str, name: str) -> DataError:
    """The message for a file that goes beyond a limit; `what` goes before its size."""
    return DataError(
        f"{where}: {what} {shown(name)} (the limit {name!r}). If that is as it should be, read it "
        f"with more: {VARIABLE}={name}=NUMBER"
    )


def check_depth(value: Any, where: object) -> int:
    """Refuse lists and objects that stand inside one another too often.

    Returns:
        how many names there are in all objects, which a reader can compare with its text.

    >>> check_depth({"a": [{"b": 1}, {"b": 2}]}, "x.json")
    3
    """
    names, most = 0, limit("depth")
    level = [value] if type(value) in INSIDE else []
    for deep in count():
        if not level:
            break
        if deep >= most:
            raise beyond(where, "is nested deeper than", "depth")
        objects = [x for x in level if type(x) is dict]
        lists = [x for x in level if type(x) is list] if len(objects) < len(level) else []
        names += sum(map(len, objects))
        level = [x for o in objects for x in o.values() if type(x) is not str and type(x) in INSIDE]
        level += [x for part in lists for x in part if type(x) is not str and type(x) in INSIDE]
    return names


class Unpacking(io.RawIOBase):
    """The unpacked bytes of a file, counted; one that unpacks without end is refused.

    Args:
        file: gives the unpacked bytes.
        packed: size of the packed file.
        where: its name, for the message.
    """

    def __init__(self, file: Any, packed: int, where: object) -> None:
        self._file, self._where = file, where
        self._left = SLACK + limit("ratio") * packed
        self._seconds = float(limit("seconds"))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        begun = time.monotonic()
        piece = self._file.read(len(buffer))
        self._seconds -= time.monotonic() - begun
        self._left -= len(piece)
        if self._left < 0:
            raise beyond(self._where, "unpacks to more than its own size times", "ratio")
        if self._seconds < 0:
            raise beyond(self._where, "takes longer to read than these seconds:", "seconds")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def lines_of(file: IO[bytes], where: object) -> Any:
    """The lines of a binary file, each with its line feed, none longer than the limit."""
    most = limit("line")
    while line := file.readline(most + 1):
        if len(line) > most:
            raise beyond(where, "a line is longer than", "line")
        yield line
