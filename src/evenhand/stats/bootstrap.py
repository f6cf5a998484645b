"""Bootstrap intervals of the printed number: a mean of values or of clusters of them.

The unit that is resampled is the unit that was sampled: names, templates and contexts are
samples from larger sets, single scores mostly are not. With one unit nothing can be resampled,
and the interval is NaN with a reason.

Small samples: a percentile interval of a mean over n units is too narrow, since it knows no
t quantile and no n/(n-1); `method="expanded"` corrects for both. See docs/statistics.md for
measured coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import SpecError
from evenhand.stats._checks import choice, not_finite, same_length
from evenhand.stats._draws import Floats, codes_of
from evenhand.stats._resample import Value, plain, quantiles, ratio_replicates

__all__ = ["Interval", "clustered", "interval"]

Method = Literal["percentile", "expanded"]
BLOCK = 64 * 2**20
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % bootstrap interval.

    Numbers are floats, or arrays when several were estimated at once. `units` counts what was
    resampled; `reason` says why the interval is NaN, else it is empty.
    """

    estimate: Value
    low: Value
    high: Value
    units: int = 0
    reason: str = ""


def interval(
    values: ArrayLike, *, resamples: int = 2_000, seed: int = 0, method: Method = "percentile"
) -> Interval:
    """Interval of the mean of independent values (Efron 1979).

    Draws n of the n values with replacement, `resamples` times, and takes the quantiles 0.025 and
    0.975 of their means; "expanded" widens for small n (Hesterberg 2015).

    Args:
        values: [n] or [n, tests], the columns resampled together.
        resamples, seed: bootstrap samples, and the seed of drawing them.
        method: "percentile" or "expanded".

    Returns:
        Estimate and interval; NaN with a reason for non-finite or fewer than two values.

    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0]).estimate
    3.0
    """
    data = np.asarray(values, dtype=np.float64)
    return _drawn(data, np.arange(len(data)), "value", resamples, seed, method)


def clustered(
    values: ArrayLike,
    clusters: ArrayLike,
    *,
    resamples: int = 2_000,
    seed: int = 0,
    method: Method = "percentile",
) -> Interval:
    """Interval of a mean when whole clusters were sampled, for example all items of one name.

    Draws clusters with replacement and keeps all their values (Davison & Hinkley 1997, 3.8):
    mean* = sum_c w_c S_c / sum_c w_c N_c with multinomial weights w, cluster sums S and sizes N.
    Arguments as in `interval`, with one label per row.

    >>> clustered([1.0, 1.0, 5.0], ["a", "a", "b"]).units
    2
    """
    data = np.asarray(values, dtype=np.float64)
    labels = same_length(clusters, len(data), "clusters")
    return _drawn(data, labels, "cluster", resamples, seed, method)


def _drawn(
    data: Floats, labels: ArrayLike, unit: str, resamples: int, seed: int, method: Method
) -> Interval:
    choice(method, ("percentile", "expanded"), "method")
    if resamples < 2:
        raise SpecError(f"resamples: {resamples!r} is too few. Accepted: 2 or more.")
    codes, m = codes_of(labels)
    with np.errstate(all="ignore"):
        estimate = data.mean(axis=0) if len(data) else np.full(data.shape[1:], np.nan)
    reason = not_finite(data) or (f"one {unit} cannot be resampled" if m < 2 else "")
    if reason:
        return _undefined(estimate, m, reason)
    sums, counts = np.zeros((m, *data.shape[1:])), np.bincount(codes).astype(np.float64)
    np.add.at(sums, codes, data)
    tail = (1 - LEVEL) / 2
    if method == "expanded":
        from scipy.special import ndtr, stdtrit

        tail = float(ndtr(math.sqrt(m / (m - 1)) * stdtrit(m - 1, tail)))
    return _finished(estimate, ratio_replicates(sums, counts, resamples, seed, BLOCK), m, tail)


def _finished(estimate: Floats, replicates: Floats, units: int, tail: float) -> Interval:
    low, high = quantiles(replicates, [tail, 1 - tail])
    lost = int(np.isnan(low).sum())
    reason = f"{lost} of {low.size} intervals have no defined replicates" if lost else ""
    return Interval(plain(estimate), plain(low), plain(high), units, reason)


def _undefined(estimate: Floats, units: int, reason: str) -> Interval:
    nan = plain(np.full(np.shape(estimate), np.nan))
    return Interval(plain(estimate), nan, nan, units, reason)
