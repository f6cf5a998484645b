"""Correlations of related points: families are what was sampled, not the points inside them.

Embeddings of one family (one corpus, one way of changing vectors, one line of models) share what
moves them, so a pooled p counts one accident many times. The correlation inside each family is one
draw; with Fisher's z = atanh(rho) of k families,

    t = mean(z) / (sd(z) / sqrt(k)),      k - 1 degrees of freedom

asks whether families like these have a correlation of one sign. A spread below a tenth of what
ranks alone give, 1.06 / (n - 3) (Fieller, Hartley and Pearson 1957), is taken for an accident.

Where columns drift steadily inside families, correlations are near 1 or -1 and their signs are all
there is to know: t would call seven of eight alike rare. So p is that of t or, if larger, that of
flipping the families' signs (exact), and interval and detectable correlation follow from it. Six
families that agree have a p of 1/32 and not less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from evenhand.stats.estimate import detectable, estimate, within
from evenhand.stats.permutation import paired_sign_flip
from evenhand.strict import SameValues

NAN = float("nan")
LEAST = 6
"""With five families all signs agree by accident in 1 of 16 cases, with six in 1 of 32."""
LEAST_POINTS = 4
POWER = 0.8
SHARE = 0.1
FLIPPED, DRAWS = 14, 2_000
"""Families up to which flips are coarser than t; drawn sets of families for the power of both."""


@dataclass(frozen=True, eq=False)
class FamilyCorrelation(SameValues):
    """The mean correlation inside families, with interval and p over families.

    Attributes:
        value: tanh of the mean z; NaN without a family.
        low, high, p, detectable: over families; NaN with a reason when there are too few. A
            correlation that no lone test of so many could show leaves `detectable` undefined.
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

    >>> found = over_families([0.8, 0.7, 0.9, 0.6, 0.8, 0.8], [10] * 6)
    >>> round(found.value, 2), found.p < 0.03, found.low > 0
    (0.78, False, True)
    >>> over_families([0.8, 0.7], [10, 10]).reason
    'families: 2 with a correlation, 6 are needed, since points of one family are related'
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
    error = math.sqrt(spread / k)
    found = estimate(middle, error, k - 1, units=k)
    flipped = float(paired_sign_flip(z).p_two_sided[0])
    if flipped > found.p:
        found = estimate(middle, abs(middle) / t_of(flipped, k - 1), k - 1, units=k)
    level = rate / max(1, family)
    # z is bounded: the nearer its mean to the bound, the less families can differ.
    room = float(np.arctanh(most).mean())
    seen = within(needed(k, level) * error * math.sqrt(k), room)
    why = ""
    if seen != seen:
        least = math.ceil(1 - math.log2(level))
        why = f"families: {k}, and {least} are needed for a lone correlation among {family} tests"
    value, low, high, seen = map(math.tanh, (found.value, found.low, found.high, seen))
    return FamilyCorrelation(value, low, high, found.p, seen, k, why)


def t_of(p: float, freedom: float) -> float:
    """The t whose two-sided p this is; a little above 0 where p is 1."""
    from scipy.special import stdtrit

    return max(float(stdtrit(freedom, 1 - p / 2)), 1e-6)


@cache
def needed(k: int, level: float) -> float:
    """Mean of z in standard deviations that k families show in 80 of 100 cases, both tests asked.

    NaN where all signs alike are not rare enough. The power of the flips comes from drawn normal
    families; for more than `FLIPPED` of them t is as strict.

    >>> needed(6, 0.01), round(needed(8, 0.05), 1)
    (nan, 1.2)
    """
    if 2.0 ** (1 - k) > level:
        return NAN
    by_t = detectable(1 / math.sqrt(k), k - 1, 1, level)
    if k > FLIPPED:
        return by_t
    drawn = np.random.default_rng(0).standard_normal((k, DRAWS))
    low, high = by_t, 8 * by_t
    for _ in range(12):
        middle = (low + high) / 2
        z = drawn + middle
        t = z.mean(axis=0) / z.std(axis=0, ddof=1) * math.sqrt(k)
        found = (np.abs(t) >= t_of(level, k - 1)) & (paired_sign_flip(z).p_two_sided <= level)
        low, high = (low, middle) if found.mean() >= POWER else (middle, high)
    return high
