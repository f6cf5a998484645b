"""Compiled loops of `mixing`. Importing this needs numba; the machine code is kept on disk.

The exponential and the logarithm are the Cephes polynomials for float32, good to about 1e-7
relative: plain arithmetic, which the compiler turns into vector instructions. Every integer step
is cut back to 32 bits, since numba widens and wide integers are not vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

CHUNK = 2_048  # numbers of a row at a time: they stay in the nearest cache
F, I = np.float32, np.int32  # noqa: E741
LOG2E, LN2 = F(1.4426950408889634), F(0.6931471805599453)
LEAST = F(-126.0)  # the smallest power of two that is an ordinary float32
ROOT_HALF = I(0x3F3504F3)  # the bits of sqrt(1/2)
# NaN and infinity keep their meaning: only the order of sums may change.
LOOSE = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    options |= {"fastmath": LOOSE, "nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the machine code in: compile it in every process
        return numba.njit(**options)(function)


def _power_of_two(x: Any) -> Any:
    """2^x for |x| <= 126."""
    whole = np.floor(x + F(0.5))
    r = x - whole
    p = F(1.535336188319500e-4)
    p = p * r + F(1.339887440266574e-3)
    p = p * r + F(9.618437357674640e-3)
    p = p * r + F(5.550332471162809e-2)
    p = p * r + F(2.402264791363012e-1)
    p = p * r + F(6.931472028550421e-1)
    p = p * r + F(1.0)
    return p * I(I(I(whole) + I(127)) << I(23)).view(F)


def _logarithm(x: Any) -> Any:
    """log x for an ordinary positive float32."""
    bits = F(x).view(I)
    power = I(I(bits - ROOT_HALF) >> I(23))
    m = I(bits - I(power << I(23))).view(F) - F(1.0)  # sqrt(1/2) - 1 <= m < sqrt(2) - 1
    p = F(7.0376836292e-2)
    p = p * m + F(-1.1514610310e-1)
    p = p * m + F(1.1676998740e-1)
    p = p * m + F(-1.2420140846e-1)
    p = p * m + F(1.4249322787e-1)
    p = p * m + F(-1.6668057665e-1)
    p = p * m + F(2.0000714765e-1)
    p = p * m + F(-2.4999993993e-1)
    p = p * m + F(3.3333331174e-1)
    square = m * m
    return m + (p * m * square - F(0.5) * square + F(power) * LN2)


power_of_two = compiled(_power_of_two, inline="always")
logarithm = compiled(_logarithm, inline="always")


def _powers(d: Any) -> None:
    for j in range(d.size):
        d[j] = power_of_two(d[j])


def _sums(logits: Any, ratios: Any, shift: Any) -> Any:
    total, mixed = F(0.0), F(0.0)
    for j in range(logits.size):
        x = logits[j] * LOG2E - shift
        p = power_of_two(x if x > LEAST else LEAST)
        total += p
        mixed += p * ratios[j]
    return total, mixed


def _add_logs(logits: Any, ratios: Any, constant: Any) -> None:
    for j in range(logits.size):
        logits[j] += logarithm(ratios[j] + constant)


powers, sums, add_logs = compiled(_powers), compiled(_sums), compiled(_add_logs)


def _sweep(own: Any, moved: Any, rows: Any, shift: Any, odds: Any, means: Any) -> None:
    for n in range(len(moved)):
        total, mixed = 0.0, 0.0
        for at in range(0, own.shape[1], CHUNK):
            ratios = moved[n, at : at + CHUNK]
            powers(ratios)
            some, some_mixed = sums(own[rows[n], at : at + CHUNK], ratios, shift[n])
            total += some
            mixed += some_mixed
        means[n] = mixed / total
        constant = min(means[n] * odds[n], 1e38)  # beyond that the own logits stay anyway
        add_logs(own[rows[n]], moved[n], F(constant))


sweep = compiled(_sweep)
