"""The estimate behind a finding."""

from __future__ import annotations

import math
from dataclasses import replace

from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import NAN, ROUNDING, Estimate, alike

SURE = 1e6
"""Degrees of freedom of an error that is known from an interval alone."""


def estimated(f: Finding) -> Estimate:
    """The estimate behind a finding; one without an error of its own has that of its interval.

    >>> from math import isclose
    >>> shown = estimated(Finding("a/x", "a", "m", 0.2, "", low=0.004, high=0.396, n=9))
    >>> isclose(shown.error, 0.1, rel_tol=1e-3)
    True
    """
    from scipy.special import ndtri

    error, freedom = f.error, f.freedom
    if error != error and f.high - f.low >= 0:
        error, freedom = (f.high - f.low) / 2 / float(ndtri(0.5 + f.level / 2)), SURE
    return Estimate(
        f.value, error, freedom, f.low, f.high, f.p, f.detectable, f.n, f.ideal, f.level
    )


def room(card: MetricCard, value: float) -> float:
    """How far a unit could lie from units that are all alike; NaN where values have no bounds.

    >>> room(MetricCard("gap", "gap", low=-1, high=1), 0.25)
    1.25
    """
    far = max(card.high - value, value - card.low)
    return far if math.isfinite(far) else NAN


def open_interval(finding: Finding, card: MetricCard) -> Finding:
    """The interval of units that all show the ideal: none of them is otherwise, but others may be.

    Where values have no bounds, nothing says how far off they could be: then there is no interval.

    >>> card = MetricCard("gap", "gap", low=-1, high=1)
    >>> shown = open_interval(Finding("a/x", "a", "gap", 0.0, "", 0.0, 0.0, p=1.0, n=60), card)
    >>> round(shown.low, 2), round(shown.high, 2)
    (-0.06, 0.06)
    """
    closed = finding.high - finding.low <= ROUNDING and finding.p == 1 and finding.n > 0
    if not closed or finding.value != finding.ideal:
        return finding
    reach = alike(finding.n, room(card, finding.value), finding.level)
    why = "" if reach == reach else f"{finding.n} units that do not vary: no interval"
    return replace(
        finding,
        low=finding.value - reach,
        high=finding.value + reach,
        reason=finding.reason or why,
    )
