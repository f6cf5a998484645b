"""The calibration line: what a model says about an occupation, by who works in it.

    y_o = a + b x_o + e_o,     x_o the log odds of a group among those who work in occupation o

y_o is the model's log odds (of "she" against "he"; of names of one group against those of another).
b = 0: occupations are alike to the model; 1: they differ as in the labour market; above 1 the model
makes them differ more. a is what it says of an occupation that both hold alike.

Occupations are the sample, and those at the ends may spread more than others (`stats.points`).
Names are a sample too: with w_o = (x_o - mean) / S_xx and residuals e_no of name n, the values
b_n + J w_o e_no / sqrt(1 - h_o) have the name's slope as their mean over the J occupations (h_o:
leverage, as in HC2), and groups of names, which may differ in spread, are compared over names and
occupations (`crossed.paired_contrasts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.clustered_means import STEADY, halves
from evenhand.stats.crossed import paired_contrasts
from evenhand.stats.estimate import NAN, Estimate, estimate
from evenhand.stats.points import ALONE, Points

Floats = npt.NDArray[np.float64]
FEWEST = 4
"""Occupations that leave enough degrees of freedom."""


@dataclass(frozen=True)
class Line:
    """Slope and height of a calibration line.

    `height` is the log odds of `beside` against the group where both work alike; undefined for
    names, which are more or less common anyway.
    """

    group: str
    beside: str
    slope: Estimate
    height: Estimate
    n: int

    @property
    def amplification(self) -> Estimate:
        """The slope beside that of the labour market, 1."""
        e = self.slope
        return replace(estimate(e.value, e.error, e.freedom, ideal=1.0), units=e.units)


def pronoun_line(x: Floats, y: Floats, group: str, beside: str, **how: Any) -> Line:
    """The line of one number per occupation.

    >>> line = pronoun_line(np.arange(-3.0, 4), np.arange(-3.0, 4) / 2 + 1, "women", "men")
    >>> line.slope.value, line.height.value
    (0.5, -1.0)
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if reason := _too_little(x):
        empty = Estimate(NAN, units=len(x), reason=reason)
        return Line(group, beside, empty, empty, len(x))
    fixed = np.stack([np.ones(len(x)), x], axis=1)
    height, slope = (
        _rounded(Points(fixed, c).estimate(y, **how)) for c in ([-1.0, 0.0], [0.0, 1.0])
    )
    return Line(group, beside, slope, height, len(x))


def name_line(
    x: Floats, y: Floats, first: npt.NDArray[np.bool_], group: str, beside: str, **how: Any
) -> Line:
    """The line of names of a group against those of another.

    Args:
        x: [occupations] log odds in the labour market.
        y: [names, occupations] log-probabilities.
        first: which names are of the group.
    """
    known = np.isfinite(x) & np.isfinite(y).all(axis=0)
    x, y = x[known], y[:, known]
    none = Estimate(NAN, reason="names are more or less common, whoever works where")
    reason = _too_little(x) or (
        "fewer than two names" if min(first.sum(), (~first).sum()) < 2 else ""
    )
    if reason:
        return Line(group, beside, Estimate(NAN, units=len(x), reason=reason), none, len(x))
    away = x - x.mean()
    square = float(away @ away)
    slopes = y @ away / square
    rest = y - y.mean(axis=1, keepdims=True) - slopes[:, None] * away
    leverage = 1 / len(x) + away**2 / square
    if (leverage > 1 - ALONE).any():
        why = "one occupation alone decides the slope"
        return Line(group, beside, Estimate(NAN, units=len(x), reason=why), none, len(x))
    values = slopes[:, None] + len(x) * away / square * rest / np.sqrt(1 - leverage)
    values += slopes[:, None] - values.mean(axis=1, keepdims=True)
    line = Points(np.stack([np.ones(len(x)), x], axis=1), [0.0, 1.0])
    ordered = np.concatenate([values[first], values[~first]])[None]
    found = paired_contrasts(ordered, int(first.sum()), line.freedom, **how)[0]
    return Line(group, beside, found, none, len(x))


def _too_little(x: Floats) -> str:
    if len(x) < FEWEST:
        return f"{len(x)} occupations with figures, fewer than {FEWEST}"
    return "" if np.ptp(x) > 0 else "the same share in every occupation"


def _rounded(found: Estimate) -> Estimate:
    """Points that lie on a line leave what additions leave."""
    if found.error > 1e-9 * max(1.0, abs(found.value)):
        return found
    return replace(found, value=round(found.value, 9))


def placebo(x: Floats, y: Floats, seed: int) -> tuple[int, int]:
    """Random halves of the occupations, by what the line leaves of them."""
    known = np.isfinite(x) & np.isfinite(y)
    if _too_little(x[known]):
        return 0, 0
    rest = y[known] - np.polyval(np.polyfit(x[known], y[known], 1), x[known])
    return halves(rest, np.arange(len(rest)), splits=STEADY // 4, seed=seed)
