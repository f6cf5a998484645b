"""Correlation with a permutation p and a bootstrap interval: one pair, or a whole table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError, SpecError
from evenhand.stats._checks import choice, share, table, vector
from evenhand.stats._draws import TIE, Floats, Method, Plan, plan, rows_per_block
from evenhand.stats._pairs import (
    kendall_null,
    linear_null,
    null_rows,
    order_blocks,
    permutation_count,
    scipy_order_blocks,
    unit_columns,
    weighted_kendall,
    weighted_linear,
    weighted_ranks,
)
from evenhand.stats._resample import quantiles, weight_blocks

__all__ = ["CorrelationResult", "CorrelationTable", "correlate", "correlate_table"]

Coefficient = Literal["spearman", "pearson", "kendall"]
METHODS = ("spearman", "pearson", "kendall")
BLOCK = 32 * 2**20


@dataclass(frozen=True, slots=True)
class CorrelationResult:
    """A correlation, its two-sided permutation p and its bootstrap interval.

    `reason` says why the coefficient is NaN, else it is empty.
    """

    coefficient: float
    p: float
    low: float
    high: float
    n: int
    method: str
    reason: str
    p_method: Method
    n_permutations: int
    null: Floats


@dataclass(frozen=True, slots=True)
class CorrelationTable:
    """Correlations of every column of x with every column of y, arrays [a, b].

    `p_max_t` is adjusted over the whole table (family-wise); `max_null` is the null of the
    largest absolute coefficient. `reasons[i][j]` says why a pair is NaN.
    """

    coefficient: Floats
    p: Floats
    low: Floats
    high: Floats
    p_max_t: Floats
    n: int
    method: str
    p_method: Method
    n_permutations: int
    max_null: Floats
    reasons: tuple[tuple[str, ...], ...]


def correlate(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Coefficient = "spearman",
    resamples: int = 9_999,
    seed: int = 0,
    scipy_stream: bool = False,
    max_exact: int = 200_000,
    level: float = 0.95,
    bootstrap: int = 2_000,
) -> CorrelationResult:
    """Correlation of two vectors with permutation p and bootstrap interval.

    pearson r = sum(zx * zy); spearman = pearson of average ranks; kendall = tau-b. Range
    [-1, 1]; positive: they rise together. The test is that of Pitman (1937):
    p = P(|r*| >= |r|) with x permuted, exact when n! is at most `max_exact` (n <= 8), else
    (b + 1)/(resamples + 1). The interval resamples pairs.

    Args:
        x: n values.
        y: n values, paired with x.
        method: "spearman", "pearson" or "kendall" (n^2 work per permutation).
        resamples: random permutations.
        seed: seed of permutations and bootstrap.
        scipy_stream: reproduce scipy.stats.permutation_test((x,), ..., "pairings", two-sided,
            n_resamples=resamples, random_state=seed): its legacy stream, and its p, twice the
            smaller one-sided p (Kato & Miyao's tables).
        max_exact: list all permutations when there are at most this many.
        level: level of the interval.
        bootstrap: resamples of the interval; 0 for none (NaN).

    Returns:
        The coefficient; NaN with a reason for constant or non-finite input or n < 3.

    >>> correlate([1, 2, 3, 4], [1, 3, 2, 4]).coefficient
    0.8
    """
    first, second = vector(x, "x"), vector(y, "y")
    kept: list[Floats] = []
    result = _table(
        first[:, None],
        second[:, None],
        method,
        (resamples, seed, scipy_stream, max_exact),
        (level, bootstrap),
        kept,
    )
    null = np.concatenate(kept)[:, 0, 0] if kept else np.empty(0)
    return CorrelationResult(
        float(result.coefficient[0, 0]),
        float(result.p[0, 0]),
        float(result.low[0, 0]),
        float(result.high[0, 0]),
        result.n,
        method,
        result.reasons[0][0],
        result.p_method,
        result.n_permutations,
        null,
    )


def correlate_table(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Coefficient = "spearman",
    resamples: int = 9_999,
    seed: int = 0,
    scipy_stream: bool = False,
    max_exact: int = 200_000,
    level: float = 0.95,
    bootstrap: int = 2_000,
) -> CorrelationTable:
    """Correlations of all columns of x [n, a] with all columns of y [n, b], shared permutations.

    Ranks once, permutes the rows of x and multiplies: r* = Zx[order]' Zy, all a x b pairs in one
    product. Gives the p of `correlate` for each pair, and p_max_t = P(max |r*| >= |r|) over the
    table (Westfall & Young 1993). Arguments as in `correlate`.

    >>> correlate_table([[1, 4], [2, 3], [3, 2], [4, 1]], [[1], [3], [2], [4]]).coefficient.tolist()
    [[0.8], [-0.8]]
    """
    return _table(
        table(x, "x"),
        table(y, "y"),
        method,
        (resamples, seed, scipy_stream, max_exact),
        (level, bootstrap),
        None,
    )


def _table(
    x: Floats,
    y: Floats,
    method: str,
    permuting: tuple[int, int, bool, int],
    boot: tuple[float, int],
    keep: list[Floats] | None,
) -> CorrelationTable:
    """Both public forms: check, drop unusable columns, test, and put everything in place."""
    choice(method, METHODS, "method")
    share(boot[0], "level")
    if len(x) != len(y):
        raise DataError(f"y: {len(y)} values for {len(x)} of x. Accepted: pairs of equal number.")
    resamples, seed, stream, max_exact = permuting
    n = len(x)
    why_x, why_y = _column_problems(x, "x"), _column_problems(y, "y")
    reasons = tuple(tuple(a or b for b in why_y) for a in why_x)
    at = np.ix_([not w for w in why_x], [not w for w in why_y])
    coefficient, p, low, high, max_t = (np.full((x.shape[1], y.shape[1]), np.nan) for _ in "crlhm")
    made, maxima = Plan("exact", 0), np.empty(0)
    if coefficient[at].size:
        # scipy lists all permutations when they are no more than the resamples.
        limit = resamples if stream else max_exact
        made = plan(permutation_count(n), resamples, limit)
        fx, fy = x[:, at[0][:, 0]], y[:, at[1][0]]
        coefficient[at], p[at], max_t[at], maxima = _permute(
            fx, fy, method, made, seed, stream, keep
        )
        if boot[1]:
            low[at], high[at] = _interval(fx, fy, method, boot[0], boot[1], seed)
    return CorrelationTable(
        coefficient, p, low, high, max_t, n, method, made.method, made.total, maxima, reasons
    )


def _permute(
    x: Floats,
    y: Floats,
    method: str,
    made: Plan,
    seed: int,
    stream: bool,
    keep: list[Floats] | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Coefficients, p, max-T p and the null of the maximum, for usable columns."""
    n, a, b = len(x), x.shape[1], y.shape[1]
    rows = null_rows(n, a, b, made, method, BLOCK)
    draw = scipy_order_blocks if stream and made.method == "sampled" else order_blocks
    orders = draw(n, made, seed=seed, rows=rows)
    null_of = kendall_null if method == "kendall" else linear_null
    if method != "kendall":
        x, y = (unit_columns(_ranks(v) if method == "spearman" else v) for v in (x, y))
    observed = next(null_of(x, y, iter([np.arange(n)[None]])))[0]
    tie = 100 * np.finfo(np.float64).eps * np.abs(observed) if stream else np.full((a, b), TIE)
    left, right, both = (np.zeros((a, b), dtype=np.int64) for _ in range(3))
    maxima: list[Floats] = []
    for block in null_of(x, y, orders):
        if keep is not None:
            keep.append(block.copy())
        left += np.count_nonzero(block <= observed + tie, axis=0)
        right += np.count_nonzero(block >= observed - tie, axis=0)
        size = np.abs(block, out=block)
        both += np.count_nonzero(size >= np.abs(observed) - tie, axis=0)
        maxima.append(size.reshape(len(size), -1).max(axis=1))
    largest = np.concatenate(maxima)
    reached = len(largest) - np.searchsorted(np.sort(largest), np.abs(observed) - TIE)
    two = np.minimum(2 * made.p(np.minimum(left, right)), 1.0) if stream else made.p(both)
    return np.clip(observed, -1.0, 1.0), two, made.p(reached), largest


def _interval(
    x: Floats, y: Floats, method: str, level: float, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Percentile interval from resampled pairs; samples without spread are left out."""
    if resamples < 2:
        raise SpecError(f"bootstrap: {resamples!r} is too few. Accepted: 0, or 2 or more.")
    n, a, b = len(x), x.shape[1], y.shape[1]
    rows = rows_per_block(resamples, 8 * (3 * n * (a + b) + 4 * a * b), BLOCK)
    # A stream of its own, so that permutations and bootstrap do not share draws.
    rng = np.random.default_rng([seed, 1])
    parts = []
    for weights in weight_blocks(rng, n, resamples, rows):
        if method == "kendall":
            parts.append(weighted_kendall(x, y, weights))
        elif method == "spearman":
            ranks = [weighted_ranks(v, weights) for v in (x, y)]
            parts.append(weighted_linear(ranks[0], ranks[1], weights))
        else:
            parts.append(weighted_linear(unit_columns(x), unit_columns(y), weights))
    low, high = quantiles(np.concatenate(parts), [(1 - level) / 2, (1 + level) / 2])
    return low, high


def _ranks(values: Floats) -> Floats:
    """Average ranks of each column; scipy.stats would take a second to import."""
    return np.asarray(weighted_ranks(values, np.ones((1, len(values))))[0], np.float64)


def _column_problems(values: Floats, name: str) -> list[str]:
    """Why a column has no correlation, or an empty string."""
    n = len(values)
    if n < 3:
        return [f"{n} pairs are too few, 3 are needed"] * values.shape[1]
    bad = np.count_nonzero(~np.isfinite(values), axis=0)
    flat = values.max(axis=0, initial=-np.inf) == values.min(axis=0, initial=np.inf)
    return [
        f"{name}: {k} of {n} values are not finite" if k else f"{name} is constant" if same else ""
        for k, same in zip(bad.tolist(), flat.tolist(), strict=True)
    ]
