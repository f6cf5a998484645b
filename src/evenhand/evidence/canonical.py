"""Canonical JSON (RFC 8785): one spelling for one value, so that its hash says what it holds.

Keys in the order of their UTF-16 units, no spaces, the shortest escapes, numbers as ECMAScript
writes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from evenhand.strict import plain

EXACT = 2**53


def canonical(value: Any) -> bytes:
    """The canonical bytes of a value; what is not finite is null, as in all our JSON.

    >>> canonical({"b": 1e21, "a": [0.1, -0.0, True, "é"]})
    b'{"a":[0.1,0,true,"\\xc3\\xa9"],"b":1e+21}'
    """
    return _written(plain(value)).encode("utf-8", "backslashreplace")


def canonical_hash(value: Any) -> str:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda k: k.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_written(k)}:{_written(value[k])}" for k in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        value = float(value)
    return _number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """A number as ECMAScript writes it (both languages choose the same shortest digits).

    >>> [_number(x) for x in (1e-7, 1.5e-06, 123456789012345680000.0, 4.0, -2.5e30)]
    ['1e-7', '0.0000015', '123456789012345680000', '4', '-2.5e+30']
    """
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    # The value is 0.DIGITS * 10 ** point.
    point = len(whole) + int(exponent) if exponent else _point(whole, part)
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:
        text = digits.ljust(point, "0")
        return sign + text[:point] + (f".{text[point:]}" if text[point:] else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    head = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
    return f"{sign}{head}e{point - 1:+d}"


def _point(whole: str, part: str) -> int:
    """Where the decimal point stands before the first digit that is not 0."""
    return len(whole) if whole != "0" else len(part.lstrip("0")) - len(part)
