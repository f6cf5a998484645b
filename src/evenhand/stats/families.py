"""Correlations of related points: families are what was sampled, not the points inside them.

Embeddings of one family (one corpus, one way of changing vectors, one line of models) share what
moves them, so a pooled p counts one accident many times. The correlation inside each family is one
draw; with Fisher's z = atanh(rho) of k families,

    t = mean(z) / (sd(z) / sqrt(k)),      k - 1 degrees of freedom

asks whether families like these have a correlation of one sign. A spread below a tenth of what
ranks alone give, 1.06 / (n - 3) (Fieller, Hartley and Pearson 1957), is taken for an accident.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.stats.estimate import estimate

NAN = float("nan")
LEAST = 5
"""With four families all signs agree by accident in 1 of 8 cases, with five in 1 of 16."""
LEAST_POINTS = 4
SHARE = 0.1


@dataclass(frozen=True)
class FamilyCorrelation:
    """The mean correlation inside families, with interval and p over families.

    Attributes:
        value: tanh of the mean z; NaN without a family.
        low, high, p, detectable: over families; NaN with a reason when there are too few.
        families: how many had a correlation.
    """

    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    detectable: float = NAN
    families: int = 0
    reason: str = ""


def over_families(
    rho: Sequence[float], points: Sequence[int], *, family: int = 1, rate: float = 0.05
) -> FamilyCorrelation:
    """The mean of the families' rank correlations, families being the sample.

    A correlation of n points counts as 1 - 6 / (n^3 - n) at most, half a step of ranks from 1.

    Args:
        rho: Spearman's coefficient inside each family; NaN is left out.
        points: how many points each family has; fewer than 4 are left out.
        family, rate: tests corrected together, for the detectable correlation.

    >>> found = over_families([0.8, 0.7, 0.9, 0.6, 0.8], [10] * 5)
    >>> round(found.value, 2), found.p < 0.01, found.low > 0
    (0.78, True, True)
    >>> over_families([0.8, 0.7], [10, 10]).reason
    'families: 2 with a correlation, 5 are needed, since points of one family are related'
    """
    kept = [(r, n) for r, n in zip(rho, points) if n >= LEAST_POINTS and not math.isnan(r)]
    k = len(kept)
    if not k:
        return FamilyCorrelation(reason=f"families: none has {LEAST_POINTS} points that vary")
    n = np.asarray([n for _, n in kept], float)
    most = 1 - 6 / (n**3 - n)
    z = np.arctanh(np.clip([r for r, _ in kept], -most, most))
    middle = float(z.mean())
    if k < LEAST:
        why = (
            f"families: {k} with a correlation, {LEAST} are needed, since points of one family "
            "are related"
        )
        return FamilyCorrelation(math.tanh(middle), families=k, reason=why)
    ranks = float((1.06 / (n - 3)).mean())
    spread = max(float(z.var(ddof=1)), SHARE * ranks)
    found = estimate(middle, math.sqrt(spread / k), k - 1, units=k, family=family, rate=rate)
    # The spread of few families is too small on average (E sd = c4 sigma).
    seen_z = found.detectable / _c4(k - 1)
    value, low, high, seen = map(math.tanh, (found.value, found.low, found.high, seen_z))
    return FamilyCorrelation(value, low, high, found.p, seen, k)


def _c4(freedom: int) -> float:
    """Mean of a sample deviation over the true one, with so many degrees of freedom."""
    above = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return math.sqrt(2 / freedom) * math.exp(above)
