"""The smallest effect a run could have seen: what "no difference detected" leaves open."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats._checks import not_finite, same_length, share, vector
from evenhand.stats._draws import codes_of
from evenhand.stats._resample import Value, plain

__all__ = ["detectable_difference", "detectable_effect", "detectable_mean"]


def detectable_effect(standard_error: ArrayLike, level: float = 0.05, power: float = 0.8) -> Value:
    """Smallest true effect found with the given power in a two-sided test (Bloom 1995).

    (z_(1 - level/2) + z_power) * standard_error, by the normal approximation; 2.80 standard
    errors for 5 % and 80 %. It is too small for few units (below about 20), where the t
    quantile is larger. Same unit as the standard error, never negative; NaN stays NaN.

    Args:
        standard_error: of the estimate; a number or an array.
        level: chance of a false finding.
        power: chance to find an effect of this size.

    Returns:
        A float, or an array like the input.

    >>> round(detectable_effect(0.01), 5)
    0.02802
    """
    from scipy.special import ndtri

    share(level, "level")
    share(power, "power")
    factor = max(0.0, float(ndtri(1 - level / 2) + ndtri(power)))
    return plain(factor * np.asarray(standard_error, dtype=np.float64))


def detectable_difference(
    x: ArrayLike, y: ArrayLike, level: float = 0.05, power: float = 0.8
) -> float:
    """Smallest difference of two means that samples like these would reveal.

    `detectable_effect` of sqrt(var(x)/n_x + var(y)/n_y), variances with n - 1. NaN when a sample
    has fewer than two values or a value that is not finite (Bloom 1995).

    >>> round(detectable_difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), 4)
    2.2875
    """
    first, second = vector(x, "x"), vector(y, "y")
    if min(len(first), len(second)) < 2 or not_finite(first) or not_finite(second):
        return float("nan")
    variance = first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)
    return float(detectable_effect(np.sqrt(variance), level, power))


def detectable_mean(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    level: float = 0.05,
    power: float = 0.8,
) -> float:
    """Smallest mean, away from 0, that values like these would reveal.

    `detectable_effect` of the standard error sd/sqrt(n); with clusters of
    sqrt(m/(m - 1) * sum_c (S_c - N_c * mean)^2) / n (m clusters, sums S, sizes N;
    Cameron & Miller 2015). NaN for fewer than two values or clusters, or a value that is not
    finite.

    >>> round(detectable_mean([1.0, 2.0, 3.0, 4.0]), 4)
    1.8084
    """
    data = vector(values, "values")
    n = len(data)
    codes, m = codes_of(np.arange(n) if clusters is None else same_length(clusters, n, "clusters"))
    if m < 2 or not_finite(data):
        return float("nan")
    sums = np.bincount(codes, weights=data - data.mean(), minlength=m)
    error = np.sqrt(m / (m - 1) * (sums**2).sum()) / n
    return float(detectable_effect(error, level, power))
