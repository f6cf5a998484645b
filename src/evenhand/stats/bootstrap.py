"""Bootstrap intervals of the printed number: of values, clusters, or crossed rows and columns.

The unit that is resampled is the unit that was sampled: names, templates and contexts are
samples from larger sets, single scores mostly are not. With one unit nothing can be resampled,
and the interval is NaN with a reason.

Small samples: a percentile interval of a mean over n units is too narrow, since it knows no
t quantile and no n/(n-1); `method="expanded"` corrects for both. See docs/statistics.md for
measured coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats._checks import not_finite, same_length, share
from evenhand.stats._draws import Floats, codes_of, rows_per_block
from evenhand.stats._resample import (
    Interval,
    IntervalMethod,
    check_options,
    finish,
    paired_weights,
    ratio,
    ratio_replicates,
    undefined_interval,
)

__all__ = ["Interval", "clustered", "crossed", "crossed_means", "from_replicates", "interval"]

Statistic = Callable[..., Any]
BLOCK = 64 * 2**20
METHODS = ("percentile", "expanded", "bca")


def interval(
    values: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: IntervalMethod = "percentile",
    axis: int = 0,
    max_bytes: int = BLOCK,
) -> Interval:
    """Interval of a statistic of independent values (Efron 1979).

    Draws n of the n values with replacement, `resamples` times, and takes the quantiles
    (1 - level)/2 and (1 + level)/2 of the statistic. "bca" corrects for bias and skewness
    (Efron 1987); "expanded" widens for small n (Hesterberg 2015).

    Args:
        values: the sample along `axis`; other axes are kept, resampled together.
        statistic: a reducer like `np.mean` or `np.median`: called with an array and `axis`.
        level: share of intervals that should hold the true value.
        resamples: bootstrap samples.
        seed: seed of the resampling.
        method: "percentile", "expanded" or "bca".
        axis: the axis that was sampled.
        max_bytes: memory of one block of resamples.

    Returns:
        Estimate and interval; NaN with a reason for non-finite or fewer than two values.
        Cost: resamples x values, 0.4 s for the mean of 5,000 values.

    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0]).estimate
    3.0
    """
    check_options(level, resamples, method, METHODS)
    data = np.moveaxis(np.asarray(values, dtype=np.float64), axis, 0)
    n = len(data)
    reason = not_finite(data) or ("one value cannot be resampled" if n < 2 else "")
    if reason:
        estimate = _quietly(statistic, data)
        return undefined_interval(estimate, level, method, (n,), reason)
    estimate = np.asarray(statistic(data, axis=0), dtype=np.float64)
    replicates = _value_replicates(data, statistic, resamples, seed, max_bytes)
    jackknife = _value_jackknife(data, statistic, max_bytes) if method == "bca" else None
    return finish(estimate, replicates, level, method, (n,), jackknife)


def clustered(
    values: ArrayLike,
    clusters: ArrayLike,
    *,
    statistic: Statistic = np.mean,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: IntervalMethod = "percentile",
    max_bytes: int = BLOCK,
) -> Interval:
    """Interval when whole clusters were sampled, for example all items of one name.

    Draws clusters with replacement and keeps all their values (Davison & Hinkley 1997, 3.8):
    mean* = sum_c w_c S_c / sum_c w_c N_c with multinomial weights w, cluster sums S and sizes N.

    Args:
        values: [n] or [n, tests].
        clusters: one label per row.
        statistic: `np.mean` takes the fast path; any other reducer is called once per resample
            with the drawn rows and axis=0.
        level: share of intervals that should hold the true value.
        resamples: bootstrap samples.
        seed: seed of the resampling.
        method: "percentile", "expanded" or "bca" (jackknife over clusters).
        max_bytes: memory of one block of resamples.

    Returns:
        Estimate and interval; NaN with a reason when there is one cluster only.

    >>> clustered([1.0, 1.0, 5.0], ["a", "a", "b"]).units
    (2,)
    """
    check_options(level, resamples, method, METHODS)
    data = np.asarray(values, dtype=np.float64)
    codes, m = codes_of(same_length(clusters, len(data), "clusters"))
    reason = not_finite(data) or ("one cluster cannot be resampled" if m < 2 else "")
    if reason:
        estimate = _quietly(statistic, data)
        return undefined_interval(estimate, level, method, (m,), reason)
    estimate = np.asarray(statistic(data, axis=0), dtype=np.float64)
    jackknife = None
    if statistic is np.mean:
        sums, counts = np.zeros((m, *data.shape[1:])), np.bincount(codes).astype(np.float64)
        np.add.at(sums, codes, data)
        replicates = ratio_replicates(sums, counts, resamples, seed, max_bytes)
        if method == "bca":
            rest = (counts.sum() - counts).reshape(-1, *[1] * (data.ndim - 1))
            jackknife = (sums.sum(axis=0) - sums) / rest
    else:
        rng = np.random.default_rng(seed)
        members = [np.flatnonzero(codes == c) for c in range(m)]
        picks = (
            np.concatenate([members[c] for c in rng.integers(0, m, m)]) for _ in range(resamples)
        )
        replicates = np.stack([np.asarray(statistic(data[rows], axis=0)) for rows in picks])
        if method == "bca":
            kept = (data[codes != c] for c in range(m))
            jackknife = np.stack([np.asarray(statistic(rows, axis=0)) for rows in kept])
    return finish(estimate, replicates, level, method, (m,), jackknife)


def crossed(
    values: ArrayLike,
    row_codes: ArrayLike,
    col_codes: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: IntervalMethod = "percentile",
    max_bytes: int = BLOCK,
) -> Interval:
    """Interval of a mean when rows and columns are both samples, for example names x templates.

    The pigeonhole bootstrap (McCullagh 2000, Owen 2007): rows and columns are drawn with
    replacement, each on its own, and an observation weighs the product of its row and column
    weight: mean* = sum w_r w_c v / sum w_r w_c. Missing and repeated cells are allowed.

    Owen shows that it is consistent for the row and column parts of the variance and counts pure
    noise about three times: it errs to the wide side when rows and columns do not matter.

    Args:
        values: [n] or [n, tests], one row per observation.
        row_codes: label of the first factor for each observation.
        col_codes: label of the second factor for each observation.
        level: share of intervals that should hold the true value.
        resamples: bootstrap samples.
        seed: seed of the resampling.
        method: "percentile" or "expanded" (by the smaller of the two factors).
        max_bytes: memory of one block of resamples.

    Returns:
        Estimate and interval; NaN with a reason when a factor has one level only.

    >>> crossed([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], [0, 1, 0, 1]).estimate
    2.5
    """
    data = np.asarray(values, dtype=np.float64)
    n, tests = len(data), data.shape[1:]
    rows, n_rows = codes_of(same_length(row_codes, n, "row_codes"))
    cols, n_cols = codes_of(same_length(col_codes, n, "col_codes"))
    check_options(level, resamples, method, METHODS[:2])
    reason = not_finite(data) or _one_level(n_rows, n_cols)
    if reason:
        estimate = _quietly(np.mean, data)
        return undefined_interval(estimate, level, method, (n_rows, n_cols), reason)
    if n_rows * n_cols <= 4 * n:
        sums = np.zeros((n_rows, n_cols, *tests))
        np.add.at(sums, (rows, cols), data)
        counts = np.bincount(rows * n_cols + cols, minlength=n_rows * n_cols)
        return crossed_means(
            sums,
            counts.reshape(n_rows, n_cols),
            level=level,
            resamples=resamples,
            seed=seed,
            method=method,
            max_bytes=max_bytes,
        )
    parts = []
    size = rows_per_block(resamples, 32 * n, max_bytes)
    for w_r, w_c in paired_weights(n_rows, n_cols, resamples, seed, size):
        weights = w_r[:, rows] * w_c[:, cols]
        parts.append(ratio(weights @ data.reshape(n, -1), weights.sum(axis=1)[:, None]))
    replicates = np.concatenate(parts).reshape(resamples, *tests)
    return finish(data.mean(axis=0), replicates, level, method, (n_rows, n_cols), None)


def crossed_means(
    sums: ArrayLike,
    counts: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: IntervalMethod = "percentile",
    max_bytes: int = BLOCK,
) -> Interval:
    """Crossed intervals of many means at once, from sums and counts per cell.

    mean_k = sum_rc S_rck / sum_rc N_rck; mean*_k = (w_r' S_k w_c) / (w_r' N_k w_c), two matrix
    products for all k together. The method is that of `crossed` (Owen 2007).

    Args:
        sums: [rows, columns] or [rows, columns, tests]; sum of the values in each cell.
        counts: [rows, columns], or like `sums`; values in each cell, 0 where it is missing.
        level: share of intervals that should hold the true value.
        resamples: bootstrap samples.
        seed: seed of the resampling.
        method: "percentile" or "expanded".
        max_bytes: memory of one block of resamples.

    Returns:
        One entry per test, or floats for two-dimensional sums. A test without any value is NaN.

    >>> crossed_means([[1.0, 2.0], [3.0, 4.0]], [[1, 1], [1, 1]]).estimate
    2.5
    """
    check_options(level, resamples, method, METHODS[:2])
    cells, sizes = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if cells.ndim not in (2, 3) or sizes.shape not in (cells.shape, cells.shape[:2]):
        raise DataError(
            f"counts: shape {sizes.shape!r} does not fit sums of shape {cells.shape!r}. "
            "Accepted: sums (rows, columns[, tests]) with counts of the same shape or "
            "(rows, columns)."
        )
    tests = cells.shape[2:]
    n_rows, n_cols = cells.shape[:2]
    cells, sizes = cells.reshape(n_rows, n_cols, -1), sizes.reshape(n_rows, n_cols, -1)
    cells = np.where(sizes > 0, cells, 0.0)
    estimate = ratio(cells.sum(axis=(0, 1)), sizes.sum(axis=(0, 1))).reshape(tests)
    reason = not_finite(cells, "sums") or _one_level(n_rows, n_cols)
    if not reason and np.isnan(estimate).all():
        reason = "no observations"
    if reason:
        return undefined_interval(estimate, level, method, (n_rows, n_cols), reason)
    both = np.concatenate([cells, sizes], axis=2)
    k, width = cells.shape[2], both.shape[2]
    flat = both.reshape(n_rows, -1)
    parts = []
    size = rows_per_block(resamples, 16 * n_cols * width, max_bytes)
    for w_r, w_c in paired_weights(n_rows, n_cols, resamples, seed, size):
        by_column = (w_r @ flat).reshape(-1, n_cols, width)
        total = np.matmul(w_c[:, None, :], by_column)[:, 0]
        parts.append(ratio(total[:, :k], total[:, k:]))
    replicates = np.concatenate(parts).reshape(resamples, *tests)
    return finish(estimate, replicates, level, method, (n_rows, n_cols), None)


def from_replicates(
    estimate: ArrayLike,
    replicates: ArrayLike,
    *,
    level: float = 0.95,
    units: tuple[int, ...] = (),
    reason: str = "",
) -> Interval:
    """Percentile interval of replicates made elsewhere, kept with its estimate.

    low, high = quantiles (1 - level)/2 and (1 + level)/2 over the first axis, NaN left out
    (Efron 1979).

    >>> result = from_replicates(0.5, [0.0, 0.25, 0.5, 0.75, 1.0], level=0.5)
    >>> result.low, result.high
    (0.25, 0.75)
    """
    share(level, "level")
    value = np.asarray(estimate, dtype=np.float64)
    drawn = np.asarray(replicates, dtype=np.float64)
    if reason or len(drawn) < 2:
        why = reason or "fewer than two replicates"
        return undefined_interval(value, level, "percentile", units, why)
    return finish(value, drawn, level, "percentile", units, None)


def _one_level(n_rows: int, n_cols: int) -> str:
    if min(n_rows, n_cols) >= 2:
        return ""
    which = "row" if n_rows < 2 else "column"
    return f"one {which} cannot be resampled; use clustered over the other factor"


def _quietly(statistic: Statistic, data: Floats) -> Floats:
    """The statistic of input that has no interval: NaN for no values, no numpy warnings."""
    if not len(data):
        return np.full(data.shape[1:], np.nan)
    with np.errstate(all="ignore"):
        return np.asarray(statistic(data, axis=0), dtype=np.float64)


def _value_replicates(
    data: Floats, statistic: Statistic, resamples: int, seed: int, max_bytes: int
) -> Floats:
    n = len(data)
    if statistic is np.mean:
        return ratio_replicates(data, np.ones(n), resamples, seed, max_bytes)
    rng = np.random.default_rng(seed)
    rows = rows_per_block(resamples, 16 * (n + data.size), max_bytes)
    parts = []
    for start in range(0, resamples, rows):
        drawn = rng.integers(0, n, size=(min(rows, resamples - start), n))
        parts.append(np.asarray(statistic(data[drawn], axis=1), dtype=np.float64))
    return np.concatenate(parts)


def _value_jackknife(data: Floats, statistic: Statistic, max_bytes: int) -> Floats:
    """The statistic without each value in turn."""
    n = len(data)
    if statistic is np.mean:
        without: Floats = (data.sum(axis=0) - data) / (n - 1)
        return without
    rows = rows_per_block(n, 16 * (n + data.size), max_bytes)
    parts = []
    for start in range(0, n, rows):
        left_out = np.arange(start, min(start + rows, n))[:, None]
        others = np.arange(n - 1)
        kept = others + (others >= left_out)
        parts.append(np.asarray(statistic(data[kept], axis=1), dtype=np.float64))
    return np.concatenate(parts)
