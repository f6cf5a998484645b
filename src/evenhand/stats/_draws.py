"""Splits and sign patterns, listed in full or drawn at random, in blocks of bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import SpecError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Method = Literal["exact", "sampled"]

TIE = 1e-12
"""Two values nearer than this share of the largest attainable one are a tie."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a null is produced: every case once, or a seeded sample of them."""

    method: Method
    total: int

    def p(self, counts: ArrayLike) -> Floats:
        """Turn counts of cases at least as extreme into p: count/total, or (count+1)/(total+1)."""
        extra = 0 if self.method == "exact" else 1
        return (np.asarray(counts, dtype=np.float64) + extra) / (self.total + extra)


def plan(cases: int, samples: int, max_exact: int) -> Plan:
    """Choose the exact null when it has at most `max_exact` cases, else `samples` draws."""
    if cases <= max_exact:
        return Plan("exact", cases)
    if samples < 1:
        raise SpecError(
            f"samples: {samples!r} is too few for {cases} cases. Accepted: 1 or more, "
            f"or max_exact of at least {cases} to list them all."
        )
    return Plan("sampled", int(samples))


def rows_per_block(total: int, bytes_per_row: int, max_bytes: int) -> int:
    """Rows that fit in `max_bytes`, at least 1 and at most `total`.

    >>> rows_per_block(10_000, 800, 80_000)
    100
    """
    return max(1, min(total, max_bytes // max(1, bytes_per_row)))


def combination_rows(n: int, k: int, start: int, stop: int) -> Ints:
    """Index rows of the k-subsets of range(n) with ranks start..stop-1 (colexicographic).

    Rank r = C(c_k, k) + ... + C(c_1, 1) with c_k > ... > c_1, solved largest first.

    >>> combination_rows(4, 2, 0, 6).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    rest = np.arange(start, stop, dtype=np.int64)
    out = np.empty((stop - start, k), dtype=np.intp)
    for j in range(k, 0, -1):
        # A value beyond int64 is larger than any rank that is asked for.
        table = np.array([min(math.comb(c, j), 2**62) for c in range(n)], dtype=np.int64)
        chosen = np.searchsorted(table, rest, side="right") - 1
        out[:, j - 1] = chosen
        rest -= table[chosen]
    return out


def split_blocks(n: int, k: int, made: Plan, *, seed: int, rows: int) -> Iterator[Floats]:
    """Yield 0/1 rows that choose k of n units, `rows` at a time.

    The stream of a seed does not depend on `rows`. An exact plan lists every split once.
    """
    rng = np.random.default_rng(seed)
    first = np.zeros(n)
    first[:k] = 1.0
    few = min(k, n - k)
    for start in range(0, made.total, rows):
        stop = min(start + rows, made.total)
        if made.method == "sampled":
            yield rng.permuted(np.tile(first, (stop - start, 1)), axis=1)
            continue
        chosen = np.full((stop - start, n), 0.0 if few == k else 1.0)
        index = combination_rows(n, few, start, stop)
        np.put_along_axis(chosen, index, 1.0 if few == k else 0.0, axis=1)
        yield chosen


def sign_blocks(m: int, made: Plan, *, seed: int, rows: int) -> Iterator[Floats]:
    """Yield rows of m signs (+1 or -1), `rows` at a time; an exact plan lists all 2**m.

    The stream of a seed does not depend on `rows`.
    """
    rng = np.random.default_rng(seed)
    for start in range(0, made.total, rows):
        stop = min(start + rows, made.total)
        if made.method == "sampled":
            # One uniform per sign: bits would be buffered and tie the stream to `rows`.
            yield np.copysign(1.0, rng.random((stop - start, m)) - 0.5)
            continue
        bits = (np.arange(start, stop)[:, None] >> np.arange(m)) & 1
        yield (1 - 2 * bits).astype(np.float64)


def codes_of(labels: ArrayLike) -> tuple[Ints, int]:
    """Code any labels as 0..m-1 in sorted order, and say how many there are."""
    levels, codes = np.unique(np.asarray(labels), return_inverse=True)
    return codes.astype(np.intp), len(levels)
