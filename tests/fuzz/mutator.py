"""Spoiling files: bytes turned, cut, doubled and exchanged for what breaks readers."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from functools import cache
from typing import Any

NASTY = (
    b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m", b"[bold]x[/bold]", b"\r", b"\n\n", b"\t",
    b",", b'"', b"'", b"{", b"[", b"}", b"]", b"=1+1", b"nan", b"NaN", b"inf", b"-inf", b"1e999",
    b"-1", b"0", b"1" * 400, b"9223372036854775808", b"1e-400", b"null", b"true", b"../../x",
    b"$HOME", b"\\u0000", b"\\ud800", "\u202e".encode(), "\ufeff".encode(), b"a" * 5000,
    b"[" * 3000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2.5, 1e308, 2**63, 10**400, float("nan"), "", "x", "\ud800", "../../x",
    [], {}, [[]], {"": None}, ["a", 1], "\x1b[31m",
)  # fmt: skip


def spoiled(raw: bytes, draw: random.Random) -> bytes:
    """One to four changes of a file."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        raw = draw.choice(WAYS)(raw, draw)
    return raw


def _flip(raw: bytes, draw: random.Random) -> bytes:
    if not raw:
        return b"\x01"
    at, out = draw.randrange(len(raw)), bytearray(raw)
    out[at] ^= 1 << draw.randrange(8)
    return bytes(out)


def _cut(raw: bytes, draw: random.Random) -> bytes:
    return raw[: draw.randrange(len(raw) + 1)]


def _drop(raw: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(raw) + 1)
    return raw[:at] + raw[at + draw.choice((1, 2, 8, 64)) :]


def _double(raw: bytes, draw: random.Random) -> bytes:
    one, two = sorted((draw.randrange(len(raw) + 1), draw.randrange(len(raw) + 1)))
    return raw[:two] + raw[one:]


def _insert(raw: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(raw) + 1)
    return raw[:at] + draw.choice(NASTY) + raw[at:]


def _cell(raw: bytes, draw: random.Random) -> bytes:
    """Something between two separators exchanged: a cell, a value, a word."""
    marks = [i for i, b in enumerate(raw) if b in b',\n\t :"']
    if len(marks) < 2:
        return _insert(raw, draw)
    k = draw.randrange(len(marks) - 1)
    return raw[: marks[k] + 1] + draw.choice(NASTY) + raw[marks[k + 1] :]


def _lines(raw: bytes, draw: random.Random) -> bytes:
    rows = raw.split(b"\n")
    draw.shuffle(rows)
    return b"\n".join(rows[: draw.randrange(1, len(rows) + 1)])


def _json(raw: bytes, draw: random.Random) -> bytes:
    """A JSON value somewhere inside exchanged for one of another kind."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return _cell(raw, draw)
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, (dict, list)):
            keys = list(here) if isinstance(here, dict) else range(len(here))
            places += [(here, k) for k in keys]
            stack += [here[k] for k in keys]
    if not places:
        return json.dumps(draw.choice(VALUES)).encode()
    inside, key = draw.choice(places)
    if draw.random() < 0.3:
        del inside[key]
    else:
        inside[key] = draw.choice(VALUES)
    return json.dumps(value).encode()


@cache
def _bomb() -> bytes:
    """A third of a mebibyte that unpacks to 300."""
    return gzip.compress(b"1,2\n" * (75 << 20), compresslevel=6)


def _pack(raw: bytes, draw: random.Random) -> bytes:
    """Packed, and sometimes the packed bytes broken; rarely something that does not end."""
    if draw.random() < 0.005:
        return _bomb()
    packed = draw.choice((gzip.compress, bz2.compress, lzma.compress))(raw)
    return draw.choice((_cut, _flip, lambda r, d: r))(packed, draw)


WAYS = (_flip, _flip, _cut, _drop, _double, _insert, _cell, _cell, _lines, _json, _json, _pack)
