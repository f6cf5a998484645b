"""How much of a spread is signal: repeated runs of one model against runs of different models.

A gap that moves as much between two trainings of the same model as between different models
cannot correlate with anything. The ceiling says how large a correlation could be at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats._checks import share, vector

__all__ = ["Reliability", "attenuation_ceiling", "reliability"]

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Reliability:
    """Share of the variance over models that is not run-to-run noise.

    `noise_sd` is the sample standard deviation over repeated runs, `spread_sd` over models;
    `low` and `high` bound `reliability`; `p` tests that models vary no more than repeats do.
    `ceiling` is sqrt(reliability), 0 where that is negative. `reason` says why numbers are NaN.
    """

    noise_sd: float
    spread_sd: float
    reliability: float
    low: float
    high: float
    ceiling: float
    p: float
    n_replicates: int
    n_points: int
    reason: str


def reliability(replicates: ArrayLike, points: ArrayLike, *, level: float = 0.95) -> Reliability:
    """Reliability of a measured gap (Spearman 1904, Am. J. Psychol. 15, 72-101).

    reliability = 1 - var(replicates) / var(points), sample variances; 1: repeats agree exactly,
    0 or below: models differ no more than repeats of one model. With x measured without noise,
    |r(x, y)| can be at most sqrt(reliability of y). The interval is that of a ratio of variances
    (F distribution with n - 1 degrees of freedom each), p = P(F >= var(points)/var(replicates)).

    Args:
        replicates: the number for repeated runs of one model, at least 2.
        points: the number for different models, one run each, at least 2.

    >>> found = reliability([1.0, 1.2, 0.8], [1.0, 3.0, 5.0, 2.0, 4.0])
    >>> round(found.reliability, 3), round(found.ceiling, 3)
    (0.984, 0.992)
    """
    share(level, "level")
    again, spread = vector(replicates, "replicates"), vector(points, "points")
    again, spread = again[np.isfinite(again)], spread[np.isfinite(spread)]
    sizes = (len(again), len(spread))
    if sizes[0] < 2:
        why = f"{sizes[0]} replicates are too few, 2 are needed"
        return Reliability(NAN, NAN, NAN, NAN, NAN, NAN, NAN, *sizes, why)
    noise = float(again.var(ddof=1))
    if sizes[1] < 2:
        why = f"{sizes[1]} points are too few, 2 are needed"
        return Reliability(math.sqrt(noise), NAN, NAN, NAN, NAN, NAN, NAN, *sizes, why)
    total = float(spread.var(ddof=1))
    sds = (math.sqrt(noise), math.sqrt(total))
    if not total > 0:
        return Reliability(*sds, NAN, NAN, NAN, NAN, NAN, *sizes, "all points are equal")
    value = 1 - noise / total
    low, high, p = _interval(noise / total, sizes[0] - 1, sizes[1] - 1, level)
    return Reliability(*sds, value, low, high, attenuation_ceiling(value), p, *sizes, "")


def attenuation_ceiling(*reliabilities: float) -> float:
    """Largest |correlation| that noise of this size leaves: sqrt of the product, in [0, 1].

    Negative reliabilities count as 0 (Spearman 1904); NaN stays NaN. The bound is that of
    Pearson's r; for ranks it is close, not exact.

    >>> attenuation_ceiling(0.81), attenuation_ceiling(-0.2), attenuation_ceiling(0.25, 1.0)
    (0.9, 0.0, 0.5)
    """
    product = 1.0
    for value in reliabilities:
        product *= value if math.isnan(value) else min(max(value, 0.0), 1.0)
    return math.sqrt(product)


def _interval(ratio: float, df_noise: int, df_total: int, level: float) -> tuple[float, ...]:
    """Bounds of 1 - ratio, and p of the ratio, from the F distribution."""
    if ratio == 0:
        return 1.0, 1.0, 0.0
    from scipy.special import fdtrc, fdtri

    small, large = (float(fdtri(df_noise, df_total, (1 + s * level) / 2)) for s in (-1, 1))
    return 1 - ratio / small, 1 - ratio / large, float(fdtrc(df_total, df_noise, 1 / ratio))
