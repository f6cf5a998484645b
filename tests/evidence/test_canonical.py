"""Canonical JSON against the examples of RFC 8785 and another implementation of it."""

from __future__ import annotations

import json
import math
import random
import struct

import pytest

from evenhand.evidence.canonical import canonical

# RFC 8785, appendix B: bits of a number and its spelling.
NUMBERS = {
    "0000000000000000": "0", "8000000000000000": "0", "0000000000000001": "5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308", "4340000000000000": "9007199254740992",
    "4430000000000000": "295147905179352830000", "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23", "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21", "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001", "41b3de4355555553": "333333333.3333332",
    "becbf647612f3696": "-0.0000033333333333333333", "43143ff3c1cb0959": "1424953923781206.2",
}  # fmt: skip


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_spelled_as_the_standard_says(bits: str, text: str) -> None:
    assert canonical(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() == text


def test_keys_are_sorted_by_utf_16_units() -> None:
    keys = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\xf6": 7}
    order = [key for key, _ in json.loads(canonical(keys), object_pairs_hook=list)]
    assert order == ["\r", "1", "\x80", "\xf6", "\u20ac", "\U0001f600", "\ufb33"]


def test_another_implementation_writes_the_same() -> None:
    rfc8785 = pytest.importorskip("rfc8785", reason="needs rfc8785")
    draw = random.Random(0)
    bits = (draw.getrandbits(64).to_bytes(8, "big") for _ in range(5_000))
    values = [x for raw in bits for x in struct.unpack(">d", raw) if math.isfinite(x)]
    values += [draw.uniform(-1, 1) * 10 ** draw.randint(-9, 24) for _ in range(5_000)]
    assert canonical(values) == rfc8785.dumps(values)
