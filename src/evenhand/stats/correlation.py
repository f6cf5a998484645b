"""Correlations with a permutation p and a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError, SpecError
from evenhand.stats._checks import choice, table
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

__all__ = ["CorrelationTable", "correlate_table"]

Coefficient = Literal["spearman", "pearson", "kendall"]
METHODS = ("spearman", "pearson", "kendall")
BLOCK = 32 * 2**20
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CorrelationTable:
    """Correlations of every column of x with every column of y, arrays [a, b].

    p is two-sided by permutation, the interval a bootstrap one; `reasons[i][j]` says why a pair is
    NaN.
    """

    coefficient: Floats
    p: Floats
    low: Floats
    high: Floats
    n: int
    p_method: Method
    n_permutations: int
    reasons: tuple[tuple[str, ...], ...]


def correlate_table(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Coefficient = "spearman",
    resamples: int = 9_999,
    seed: int = 0,
    scipy_stream: bool = False,
    max_exact: int = 200_000,
    bootstrap: int = 2_000,
) -> CorrelationTable:
    """Correlations of all columns of x [n, a] with all columns of y [n, b], shared permutations.

    pearson r = sum(zx * zy); spearman = pearson of average ranks; kendall = tau-b. Range
    [-1, 1]; positive: they rise together. The test is that of Pitman (1937):
    p = P(|r*| >= |r|) with x permuted, exact when n! is at most `max_exact` (n <= 8), else
    (b + 1)/(resamples + 1). The interval (95 %) resamples pairs. Ranks once, permutes the rows of
    x and multiplies: r* = Zx[order]' Zy, all a x b pairs in one product.

    Args:
        y: n values or rows, paired with x.
        method: "spearman", "pearson" or "kendall" (n^2 work per permutation).
        scipy_stream: reproduce scipy.stats.permutation_test((x,), ..., "pairings", two-sided,
            n_resamples=resamples, random_state=seed): its legacy stream, and its p, twice the
            smaller one-sided p (Kato & Miyao's tables).
        max_exact: list all permutations when there are at most this many.
        bootstrap: resamples of the interval; 0 for none (NaN).

    Returns:
        Coefficients; NaN with a reason for constant or non-finite columns or n < 3.

    >>> correlate_table([[1, 4], [2, 3], [3, 2], [4, 1]], [[1], [3], [2], [4]]).coefficient.tolist()
    [[0.8], [-0.8]]
    """
    first, second = table(x, "x"), table(y, "y")
    choice(method, METHODS, "method")
    n = len(first)
    if n != len(second):
        raise DataError(f"y: {len(second)} values for {n} of x. Accepted: pairs of equal number.")
    why_x, why_y = _column_problems(first, "x"), _column_problems(second, "y")
    reasons = tuple(tuple(a or b for b in why_y) for a in why_x)
    at = np.ix_([not w for w in why_x], [not w for w in why_y])
    coefficient, p, low, high = (np.full((len(why_x), len(why_y)), np.nan) for _ in range(4))
    made = Plan("exact", 0)
    if coefficient[at].size:
        # scipy lists all permutations when they are no more than the resamples.
        made = plan(permutation_count(n), resamples, resamples if scipy_stream else max_exact)
        fx, fy = first[:, at[0][:, 0]], second[:, at[1][0]]
        coefficient[at], p[at] = _permute(fx, fy, method, made, seed, scipy_stream)
        if bootstrap:
            low[at], high[at] = _interval(fx, fy, method, bootstrap, seed)
    return CorrelationTable(coefficient, p, low, high, n, made.method, made.total, reasons)


def _permute(
    x: Floats, y: Floats, method: str, made: Plan, seed: int, stream: bool
) -> tuple[Floats, Floats]:
    """Coefficients and p, for usable columns."""
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
    for block in null_of(x, y, orders):
        left += np.count_nonzero(block <= observed + tie, axis=0)
        right += np.count_nonzero(block >= observed - tie, axis=0)
        both += np.count_nonzero(np.abs(block) >= np.abs(observed) - tie, axis=0)
    two = np.minimum(2 * made.p(np.minimum(left, right)), 1.0) if stream else made.p(both)
    return np.clip(observed, -1.0, 1.0), two


def _interval(
    x: Floats, y: Floats, method: str, resamples: int, seed: int
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
    low, high = quantiles(np.concatenate(parts), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
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
