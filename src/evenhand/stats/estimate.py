"""A number with everything that follows from its variance: interval, p, detectable effect.

All come from one t distribution, so that p <= 0.05 exactly when the 95 % interval leaves the ideal
out, and tails are as fine as a family of thousands of tests needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from evenhand.strict import SameValues

NAN = float("nan")
ROUNDING = 1e-12
"""Below this a spread is what additions leave behind."""
HALVINGS = 30
"""Enough digits of a detectable effect."""
ENOUGH = 6
"""Equal units from which on 2 ** (1 - units) is below 0.05."""


DIGITS = 9
"""Significant digits of stated numbers: more would show the order of additions."""


def stated(value: float, digits: int = DIGITS) -> float:
    """A number as findings print it.

    >>> stated(0.123456, 2)
    0.12
    """
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True, eq=False)
class Estimate(SameValues):
    """A value with its 95 % interval, p, and the smallest true effect this design would detect.

    Attributes:
        value: the number.
        error: its standard error.
        freedom: degrees of freedom of its t.
        low, high: the interval at `level`.
        p: two-sided, against the ideal.
        detectable: distance from the ideal found in 80 of 100 such runs, after correction.
        units: independent units behind it.
        reason: why it is undefined.
        room: how far a unit could lie from one that is asked (NaN: not known). Units that are all
            alike show no more than that few are otherwise, and this says by how much these move.
    """

    value: float
    error: float = NAN
    freedom: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    detectable: float = NAN
    units: int = 0
    ideal: float = 0.0
    level: float = 0.95
    reason: str = ""
    room: float = NAN

    def recorded(self) -> dict[str, Any]:
        """The numbers as columns of a table or of JSON."""
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}

    def at(self, level: float) -> Estimate:
        """The same with an interval at another level (for findings that were selected).

        >>> e = estimate(1.0, 0.5, 10)
        >>> e.at(0.99).low < e.low
        True
        """
        from scipy.special import stdtrit

        if self.error == 0:
            same = _constant(self.value, self.units, self.ideal, level)
            return replace(self, low=same.low, high=same.high, level=level)
        reach = float(stdtrit(self.freedom, 0.5 + level / 2)) * self.error
        return replace(self, low=self.value - reach, high=self.value + reach, level=level)


def estimate(
    value: float,
    error: float,
    freedom: float,
    *,
    units: int = 0,
    ideal: float = 0.0,
    family: int = 1,
    rate: float = 0.05,
    level: float = 0.95,
) -> Estimate:
    """p, interval and detectable effect of a value with this standard error.

    Args:
        value, error, freedom: t = (value - ideal) / error has this many degrees of freedom.
        units: independent units behind the value.
        ideal: what a model without a preference gets.
        family: how many tests are corrected together; the only true effect among them is found
            when its p is at most rate / family (Benjamini and Hochberg 1995).
        rate: the false-discovery rate.
        level: of the interval.

    >>> e = estimate(0.03, 0.01, 39, units=40)
    >>> round(e.low, 4), round(e.high, 4), round(e.p, 4), round(e.detectable, 4)
    (0.0098, 0.0502, 0.0047, 0.0289)
    """
    from scipy.special import stdtr, stdtrit

    equal = error <= ROUNDING and units > 1  # which need no degrees of freedom
    if not (np.isfinite(value) and np.isfinite(error) and (equal or freedom >= 1)):
        return Estimate(value, units=units, ideal=ideal, reason="fewer than two independent units")
    if error <= ROUNDING:
        return _constant(value, units, ideal, level)
    t = (value - ideal) / error
    p = 2.0 * float(stdtr(freedom, -abs(t)))
    reach = float(stdtrit(freedom, 0.5 + level / 2)) * error
    seen = detectable(error, freedom, family, rate)
    return Estimate(
        value, error, freedom, value - reach, value + reach, p, seen, units, ideal, level
    )


def _constant(value: float, units: int, ideal: float, level: float) -> Estimate:
    """When nothing varies, t knows nothing: p is that of all signs being alike, 2 ** (1 - n).

    Few units that are alike may be so by chance, so they have no interval: nothing speaks against
    the ideal where they lie on it (p = 1), but they are not shown to lie within any margin either.
    More of them have the interval of as many results that could have come out on the other side of
    the ideal, as far away (`alike`); it leaves the ideal out exactly when p is at most 0.05.
    """
    same = f"{units} units that do not vary" if units != 1 else "one unit"
    why = f"{same}: at least {ENOUGH} are needed to tell"
    if abs(value - ideal) <= ROUNDING:
        if 0 < units < ENOUGH:
            return Estimate(ideal, p=1.0, units=units, ideal=ideal, level=level, reason=why)
        return Estimate(ideal, 0.0, NAN, ideal, ideal, 1.0, NAN, units, ideal, level)
    if units < ENOUGH:
        return Estimate(value, 0.0, units=units, ideal=ideal, reason=why)
    p = 2.0 ** (1 - units)
    reach = alike(units, 2 * abs(value - ideal), level)
    return Estimate(value, 0.0, NAN, value - reach, value + reach, p, NAN, units, ideal, level)


def alike(units: int, width: float, level: float = 0.95) -> float:
    """How far from the mean of units that are all alike the true mean may lie.

    This many of 100 units may be otherwise, by at most `width` each (Clopper and Pearson 1934).

    >>> round(alike(20, 1.0), 3), round(alike(60, 1.0), 3)
    (0.168, 0.06)
    """
    return float(width * (1 - ((1 - level) / 2) ** (1 / units)))


def detectable(error: float, freedom: float, tests: int = 1, rate: float = 0.05) -> float:
    """The effect that is found in 80 of 100 runs as the only true one of this many tests.

    The root of a variance with few degrees of freedom is too small on average, E s = c4 sigma; that
    is made good here, where an error stands for what the next run would have.

    >>> round(detectable(1.0, 9, 4), 2)
    4.18
    """
    if not (error > 0 and freedom >= 1):
        return NAN
    c4 = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return detectable_t(freedom, rate / max(1, tests)) * error / (math.sqrt(2 / freedom) * c4)


def within(effect: float, room: float) -> float:
    """What is detectable of a mean of values that reach no further than `room` from the ideal.

    Their variance has the factor 1 - (e / room)^2 (that of shares, Wedderburn 1974), so that

        e / sqrt(1 - (e / room)^2) = D,     e = D / sqrt(1 + (D / room)^2)

    is as many of the errors that a test will find as D is of those at the ideal.

    >>> round(within(0.36, 0.5), 3), within(0.36, math.inf)
    (0.292, 0.36)
    """
    return effect / math.sqrt(1 + (effect / room) ** 2)


def settled(reach: Callable[[float], float], most: float) -> float:
    """The effect e = reach(e) between 0 and `most`, where reach depends on e itself.

    The variance of bounded values falls as their mean nears a bound, so what is detectable depends
    on the error at the very effect that is to be found.

    >>> round(settled(lambda e: 0.36 * math.sqrt(max(0.0, 1 - (e / 0.5) ** 2)), 0.5), 3)
    0.292
    """
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < reach(middle) else (low, middle)
    return high


def detectable_t(freedom: float, alpha: float, power: float = 0.8) -> float:
    """How many standard errors a true effect must have to be found with this power.

    The noncentrality d with P(|T(freedom, d)| > t_crit) = power (Owen 1965).

    >>> round(detectable_t(1e6, 0.05), 2), round(detectable_t(4, 0.05), 2)
    (2.8, 3.76)
    """
    from scipy.special import nctdtrinc, stdtrit

    critical = float(stdtrit(freedom, 1 - alpha / 2))
    return float(nctdtrinc(freedom, 1 - power, critical))
