"""The estimate behind a finding."""

from __future__ import annotations

from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate

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
