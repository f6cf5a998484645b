"""A mean with everything needed to believe it: interval, p, what it could have seen.

Items that share something (a writer, a template, a place) are no independent evidence. What they
share is the unit that is resampled and flipped here, so one cluster of a hundred items counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.stats.bootstrap import Interval, from_replicates
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_effect

Floats = npt.NDArray[np.float64]
BLOCK = 250
NAN = float("nan")
T = TypeVar("T")


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over clusters: 95 % interval, p against the ideal, difference it could have seen."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    detectable: float = NAN
    n: int = 0
    n_clusters: int = 0
    reason: str | None = None


def clustered_mean(
    values: npt.ArrayLike,
    clusters: Sequence[Any] | npt.NDArray[Any],
    *,
    strata: Sequence[Any] | npt.NDArray[Any] | None = None,
    ideal: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    resamples: int = 2_000,
    samples: int = 9_999,
    seed: int = 0,
) -> ClusteredMean:
    """The mean of values with its 95 % interval, p against the ideal and detectable difference.

    Interval: clusters resampled, widened for few of them (Hesterberg 2015). p: signs of whole
    clusters' distances from the ideal are flipped (Fisher 1935). When all values are equal (in
    each stratum) nothing varies, and the interval is the exact one of as many equal results as
    there are clusters: 1 - 0.025 ** (1 / clusters) of the range to each side.

    Args:
        values: one per item; NaN is left out.
        clusters: what each item shares with others.
        strata: when given, the mean of the strata's means: each stratum weighs the same.
        ideal: the value that p tests against.
        bounds: the smallest and largest possible value.

    Without values everything is NaN, with a reason.

    >>> row = clustered_mean([1.0, 1.0, 0.0, 1.0], "abcd", ideal=0.5, bounds=(0.0, 1.0))
    >>> row.value, row.n_clusters, row.p
    (0.75, 4, 0.625)
    >>> clustered_mean([1.0, 1.0, 1.0, 0.0], "abcd", strata="xxxy").value
    0.5
    """
    data = np.asarray(values, np.float64)
    known = np.isfinite(data)
    groups = np.asarray(["all"] * len(data) if strata is None else list(strata))[known]
    labels, data = np.asarray(list(clusters))[known], data[known]
    names, codes = np.unique(labels, return_inverse=True)
    m = len(names)
    if not len(data):
        return ClusteredMean(reason="no item could be scored")
    kinds, parts = np.unique(groups, return_inverse=True)
    sums, counts = np.zeros((2, m, len(kinds)))
    np.add.at(sums, (codes, parts), data - ideal)
    np.add.at(counts, (codes, parts), 1.0)
    distance = float((sums.sum(axis=0) / counts.sum(axis=0)).mean())
    row = ClusteredMean(ideal + distance, n=len(data), n_clusters=m)
    if m < 2:
        return replace(row, reason="one cluster of items: no interval and no test")
    share = (sums / counts.sum(axis=0)).sum(axis=1) / len(kinds)
    flips = paired_sign_flip(share, samples=samples, seed=seed)
    if all(np.ptp(data[parts == k]) == 0 for k in range(len(kinds))):
        room = (bounds[1] - bounds[0]) * (1 - 0.025 ** (1 / m))
        low, high, error = row.value - room, row.value + room, room / 1.96
    else:
        found = _interval(sums, counts, ideal + distance, ideal, resamples, seed)
        low, high, error = float(found.low), float(found.high), float(found.standard_error)
    return replace(
        row,
        low=float(max(bounds[0], low)),
        high=float(min(bounds[1], high)),
        p=float(flips.p_two_sided[0]),
        detectable=detectable_effect(error) if np.isfinite(error) else NAN,
    )


def _interval(
    sums: Floats, counts: Floats, estimate: float, ideal: float, resamples: int, seed: int
) -> Interval:
    """Percentile interval over resampled clusters, at the level that corrects for few of them."""
    from scipy.special import ndtr, stdtrit

    m = len(sums)
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, resamples, BLOCK):
        size = (min(BLOCK, resamples - start),)
        weights = rng.multinomial(m, np.full(m, 1 / m), size).astype(np.float64)
        total = weights @ counts
        means = np.full(total.shape, np.nan)
        np.divide(weights @ sums, total, out=means, where=total > 0)
        parts.append(ideal + means.mean(axis=1))
    tail = max(1e-6, float(ndtr(np.sqrt(m / (m - 1)) * stdtrit(m - 1, 0.025))))
    return from_replicates(estimate, np.concatenate(parts), level=1 - 2 * tail, units=(m,))


def with_q(rows: Sequence[T], p: Sequence[float]) -> list[T]:
    """The rows with q (Benjamini-Hochberg) of their p; those whose p is NaN are no part of it."""
    q = benjamini_hochberg(p)
    return [replace(row, q=float(value)) for row, value in zip(rows, q, strict=True)]  # type: ignore[type-var]
