"""Bootstrap weights and the interval that replicates give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import SpecError
from evenhand.stats._checks import choice, share
from evenhand.stats._draws import TIE, Floats, rows_per_block

Value: TypeAlias = Any  # a float, or a float64 array with one entry per test
IntervalMethod = Literal["percentile", "expanded", "bca"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bootstrap interval.

    `estimate`, `low` and `high` are floats, or arrays when several numbers were estimated at
    once. `units` counts what was resampled: (values,), (clusters,) or (rows, columns).
    `undefined` counts replicates without a value, which are left out. `reason` says why the
    interval is NaN, else it is empty.
    """

    estimate: Value
    low: Value
    high: Value
    level: float
    method: str
    units: tuple[int, ...]
    replicates: Floats
    undefined: int = 0
    reason: str = ""

    @property
    def standard_error(self) -> Value:
        """Standard deviation of the replicates; NaN where the interval is."""
        known = np.isfinite(self.replicates)
        size = known.sum(axis=0)
        center = np.where(known, self.replicates, 0.0).sum(axis=0) / np.maximum(size, 1)
        square = np.where(known, self.replicates - center, 0.0) ** 2
        error = np.sqrt(square.sum(axis=0) / np.maximum(size - 1, 1))
        return plain(np.where(size > 1, error, np.nan))


def plain(value: ArrayLike) -> Value:
    """A float for a single number, else a float64 array."""
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def check_options(level: float, resamples: int, method: str, accepted: tuple[str, ...]) -> None:
    """Refuse a level, number of resamples or method that makes no sense."""
    share(level, "level")
    choice(method, accepted, "method")
    if resamples < 2:
        raise SpecError(f"resamples: {resamples!r} is too few. Accepted: 2 or more.")


def weight_blocks(rng: np.random.Generator, n: int, total: int, rows: int) -> Iterator[Floats]:
    """Yield [rows, n] multinomial weights: how often each unit was drawn. Rows sum to n."""
    for start in range(0, total, rows):
        count = min(rows, total - start)
        drawn = rng.integers(0, n, size=(count, n))
        drawn += np.arange(count)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def quantiles(replicates: Floats, shares: ArrayLike) -> Floats:
    """Quantiles over the first axis without NaN; `shares` is [q] or [q, tests]."""
    flat = replicates.reshape(len(replicates), -1)
    wanted = np.broadcast_to(
        np.asarray(shares, dtype=np.float64).reshape(len(np.asarray(shares)), -1),
        (len(np.asarray(shares)), flat.shape[1]),
    )
    out = np.full(wanted.shape, np.nan)
    complete = np.isfinite(flat).all(axis=0) & (wanted == wanted[:, :1]).all(axis=0)
    if complete.any():
        out[:, complete] = np.quantile(flat[:, complete], wanted[:, 0], axis=0)
    for j in np.flatnonzero(~complete):
        column = flat[np.isfinite(flat[:, j]), j]
        if len(column) > 1 and np.isfinite(wanted[:, j]).all():
            out[:, j] = np.quantile(column, wanted[:, j])
    return out.reshape(len(wanted), *replicates.shape[1:])


def tail_shares(level: float, method: str, n: int) -> Floats:
    """Lower and upper share of the replicates that bound the interval.

    percentile: (1 - level)/2 and its mirror. expanded (Hesterberg 2015): Phi of -/+
    sqrt(n/(n-1)) * t quantile with n-1 degrees of freedom, wider for small n.
    """
    low = (1 - level) / 2
    if method == "expanded":
        from scipy.special import ndtr, stdtrit

        low = float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, low)))
    return np.array([low, 1 - low])


def bca_shares(estimate: Floats, replicates: Floats, jackknife: Floats, level: float) -> Floats:
    """Shares of the bias-corrected accelerated interval (Efron 1987), [2, tests].

    z0 = Phi^-1(share of replicates below the estimate, ties half), a = sum d^3 / (6 (sum d^2)^1.5)
    with d the jackknife deviations; share = Phi(z0 + (z0 + z) / (1 - a (z0 + z))).
    """
    from scipy.special import ndtr, ndtri

    tie = TIE * np.abs(estimate)
    at_most = (replicates <= estimate + tie).mean(axis=0)
    z0 = ndtri((at_most + (replicates < estimate - tie).mean(axis=0)) / 2)
    d = jackknife.mean(axis=0) - jackknife
    square = (d**2).sum(axis=0)
    a = np.divide((d**3).sum(axis=0), 6 * square**1.5, out=np.zeros_like(square), where=square > 0)
    shares = []
    for z in (ndtri((1 - level) / 2), ndtri((1 + level) / 2)):
        with np.errstate(invalid="ignore"):
            shares.append(ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))))
    return np.where(np.isfinite(z0), np.array(shares), np.nan)


def undefined_interval(
    estimate: Value, level: float, method: str, units: tuple[int, ...], reason: str
) -> Interval:
    """An interval of NaN, with the reason."""
    shape = np.shape(estimate)
    nan = plain(np.full(shape, np.nan))
    empty = np.empty((0, *shape))
    return Interval(plain(estimate), nan, nan, level, method, units, empty, 0, reason)


def finish(
    estimate: Value,
    replicates: Floats,
    level: float,
    method: str,
    units: tuple[int, ...],
    jackknife: Floats | None,
) -> Interval:
    """Turn replicates into an interval."""
    if jackknife is not None:
        shares = bca_shares(np.asarray(estimate), replicates, jackknife, level)
    else:
        shares = tail_shares(level, method, min(units, default=0))
    low, high = quantiles(replicates, shares)
    lost = int(np.count_nonzero(~np.isfinite(replicates)))
    reason = ""
    if np.isnan(low).any():
        reason = f"{int(np.isnan(low).sum())} of {low.size} intervals have no defined replicates"
    ends = (plain(estimate), plain(low), plain(high))
    return Interval(*ends, level, method, units, replicates, lost, reason)


def ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, NaN where nothing was drawn."""
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    bottom = np.broadcast_to(bottom, shape)
    out = np.full(shape, np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def ratio_replicates(
    sums: Floats, counts: Floats, resamples: int, seed: int, max_bytes: int
) -> Floats:
    """Replicates of sum(sums) / sum(counts) over drawn units."""
    flat = sums.reshape(len(sums), -1)
    center = flat.sum(axis=0) / counts.sum()
    flat = flat - counts[:, None] * center
    rows = rows_per_block(resamples, 32 * len(sums) + 8 * flat.shape[1], max_bytes)
    rng = np.random.default_rng(seed)
    parts = [
        ratio(w @ flat, (w @ counts)[:, None]) + center
        for w in weight_blocks(rng, len(sums), resamples, rows)
    ]
    return np.concatenate(parts).reshape(resamples, *sums.shape[1:])


def paired_weights(
    n_rows: int, n_cols: int, resamples: int, seed: int, size: int
) -> Iterator[tuple[Floats, Floats]]:
    """Row and column weights from two streams of one seed, block by block."""
    first, second = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    return zip(
        weight_blocks(first, n_rows, resamples, size),
        weight_blocks(second, n_cols, resamples, size),
        strict=True,
    )
