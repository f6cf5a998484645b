"""Is a number shown to lie within a margin, beyond it, or worse than it was? And how many units
would tell?

With an estimate of theta (distance from the ideal; value, error, freedom of its t) and a margin d:

    beyond        |theta| > d      p at |theta| = d, both tails (a minimum-effect test; d = 0: t)
    inside        |theta| < d      the larger of two one-sided p values (Schuirmann 1987)

Two models on the same items: b before, a after, u = a - b paired. A positive theta harms one side
and a negative one the other, so harm to the first side is max(0, theta), and it grew by more than d
exactly when a > d and u > d; for the other side a < -d and u < -d.

    worse         both shown on one side      the larger p (an intersection-union test)
    not worse     on either side a or u is shown to stay below d      twice the smaller p, then
                  the larger of the two sides

Each has its nominal error at every point of its null hypothesis.

Units that are all alike have no error that could be trusted. They show a difference as equal signs
do, p = 2 ** -units; that it is small they show only as far as so many equal results bound the share
of others, times how far these could lie (`Estimate.room`): twenty questions that no model answered
otherwise leave 14 of 100 open.
"""

from __future__ import annotations

import math

from evenhand.stats.estimate import NAN, ROUNDING, Estimate

POWER = 0.8
STEPS = 30


def above(found: Estimate, bound: float, *, small: bool = False) -> float:
    """One-sided p of theta <= bound: small where theta is shown to be larger.

    Units without any spread show it by all being alike: with p = 2 ** -units, and where theta is to
    be shown `small`, with the chance that none of so many is seen which could be otherwise.
    """
    from scipy.special import stdtr

    value = found.value - found.ideal
    if not (math.isfinite(value) and found.error >= 0):
        return NAN
    if found.error <= ROUNDING:
        if value <= bound:
            return 1.0
        sides = 2.0**-found.units
        # In this order: what is undefined stays so.
        return max(_unseen(found, value - bound), sides) if small else sides
    if not found.freedom >= 1:
        return NAN
    return float(stdtr(found.freedom, -(value - bound) / found.error))


def _unseen(found: Estimate, far: float) -> float:
    """Chance that units which move the mean by so much are not among those asked.

    >>> round(_unseen(Estimate(0.0, 0.0, units=59, room=1.0), 0.05), 3)
    0.048
    """
    if found.room != found.room:
        return NAN
    return float((1 - min(1.0, far / found.room if found.room else 1.0)) ** found.units)


def below(found: Estimate, bound: float, *, small: bool = False) -> float:
    """One-sided p of theta >= bound."""
    return above(mirrored(found), -bound, small=small)


def mirrored(found: Estimate) -> Estimate:
    """The distance from the ideal with its sign turned round."""
    return Estimate(
        found.ideal - found.value,
        found.error,
        found.freedom,
        units=found.units,
        ideal=0.0,
        room=found.room,
    )


def beyond(found: Estimate, margin: float = 0.0) -> float:
    """p of |theta| <= margin; with margin 0 the two-sided t test.

    >>> from evenhand.stats.estimate import estimate
    >>> e = estimate(0.3, 0.05, 30, units=31)
    >>> round(beyond(e) / e.p, 9), round(beyond(e, 0.2), 3)
    (1.0, 0.027)
    """
    far = found if found.value >= found.ideal else mirrored(found)
    return _probability(above(far, margin) + above(far, -margin))


def inside(found: Estimate, margin: float) -> float:
    """p of |theta| >= margin: two one-sided tests.

    >>> from evenhand.stats.estimate import estimate
    >>> round(inside(estimate(0.01, 0.03, 40, units=41), 0.1), 4)
    0.0023
    """
    if margin != margin:
        return NAN
    return _larger(below(found, margin, small=True), above(found, -margin, small=True))


def worse(
    after: Estimate, change: Estimate, margin: float = 0.0, *, one_sided: bool = False
) -> float:
    """p that harm grew by no more than the margin, on either side (or on the positive side alone).

    >>> from evenhand.stats.estimate import estimate
    >>> after, change = estimate(0.3, 0.05, 30, units=31), estimate(0.2, 0.04, 30, units=31)
    >>> worse(after, change) < 0.001, worse(after, estimate(-0.2, 0.04, 30, units=31))
    (True, 1.0)
    """
    ends = after.value - after.ideal, change.value
    if not all(map(math.isfinite, ends)):
        return NAN
    if one_sided:
        return _larger(above(after, margin), above(change, margin))
    if ends[0] * ends[1] <= 0:
        return 1.0
    return _larger(beyond(after, margin), beyond(change, margin))


def not_worse(
    after: Estimate, change: Estimate, margin: float, *, one_sided: bool = False
) -> float:
    """p that harm grew by the margin or more, on one side or the other.

    >>> from evenhand.stats.estimate import estimate
    >>> after, change = estimate(0.3, 0.05, 30, units=31), estimate(0.01, 0.02, 30, units=31)
    >>> not_worse(after, change, 0.1) < 0.001
    True
    """
    if margin != margin:
        return NAN
    sides = [[below(e, margin, small=True) for e in (after, change)]]
    if not one_sided:
        sides.append([above(e, -margin, small=True) for e in (after, change)])
    return _probability(_larger(*(2 * -_larger(*(-p for p in side)) for side in sides)))


def _probability(value: float) -> float:
    return min(value, 1.0)  # in this order: what is undefined stays so


def _larger(*values: float) -> float:
    """The largest; undefined where one is."""
    return max(values) if all(v == v for v in values) else NAN


def units_to_settle(
    found: Estimate, margin: float, rate: float = 0.05, power: float = POWER
) -> int | None:
    """How many units show on which side of the margin theta lies, were it the value found.

    The error shrinks as 1 / sqrt(units); None where the value lies on the margin itself.

    >>> from evenhand.stats.estimate import estimate
    >>> units_to_settle(estimate(0.05, 0.04, 39, units=40), 0.1)
    160
    """
    from scipy.special import ndtri, stdtrit

    room = abs(abs(found.value - found.ideal) - margin)
    if found.error <= ROUNDING and 0 < room < found.room < math.inf:
        return math.ceil(math.log(rate) / math.log1p(-room / found.room))
    if not (room > 0 and found.error > 0 and found.units > 0):
        return None
    ratio = 1.0
    for _ in range(STEPS):
        wanted = float(stdtrit(_freedom(found, ratio), 1 - rate) + ndtri(power))
        ratio = (wanted * found.error / room) ** 2
    return math.ceil(found.units * ratio)


def planned_units(
    pilot: Estimate,
    margin: float,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    within: bool = False,
    known: float | None = None,
) -> int | None:
    """Units of a run in which a theta of the margin's size is found with this power.

    The pilot knows the variance with this many degrees of freedom only. With n = k s^2 / d^2 units
    the planned test finds d when Z + sqrt(k) s / sigma > t, so that over pilots the power is met
    for sqrt(k) the `power` quantile of the noncentral t with noncentrality t (Julious and Owen
    2006).

    Args:
        pilot: an estimate with units, error and freedom.
        margin: d.
        alpha: of the two-sided test, after correction; of each one-sided test with `within`.
        power: the share of runs in which it shall be found.
        within: plan to show that a theta of 0 lies within the margin instead.
        known: degrees of freedom with which the pilot knows the variance, where several estimates
            were pooled; those of the pilot's t if not given.

    >>> from evenhand.stats.estimate import estimate
    >>> planned_units(estimate(0.0, 0.05, 39, units=40), 0.1)
    84
    """
    from scipy.special import nctdtrit, stdtrit

    if not (margin > 0 and pilot.error > 0 and pilot.freedom >= 1 and pilot.units > 0):
        return None
    tail, quantile = (alpha, (1 + power) / 2) if within else (alpha / 2, power)
    ratio = 1.0
    for _ in range(STEPS):
        critical = float(stdtrit(_freedom(pilot, ratio), 1 - tail))
        wanted = float(nctdtrit(known or pilot.freedom, critical, quantile))
        ratio = (wanted * pilot.error / margin) ** 2
    return max(2, math.ceil(pilot.units * ratio))


def _freedom(found: Estimate, ratio: float) -> float:
    """Degrees of freedom with this many times the units; t tables end somewhere."""
    return min(1e6, max(1.0, found.freedom * ratio))
