"""A line, or any linear fit, through sampled points that may spread unevenly.

    y = X b + e,     value = c'b = sum_i w_i y_i,     w = X (X'X)^-1 c

Points at the ends of a line decide its slope, and they often spread more than those in the middle;
the usual error takes all for alike. With residuals r and leverages h,

    V = sum_i d_i r_i^2,     d_i = w_i^2 / (1 - h_i)          (HC2: MacKinnon and White 1985)

is right for points that are alike and close to it for those that are not, and t has the degrees of
freedom that V has where they are alike (Bell and McCaffrey 2002), with M = I - X (X'X)^-1 X':

    (sum_i d_i (1 - h_i))^2 / sum_ij d_i d_j M_ij^2
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]
ALONE = 1e-9
"""Below this share of its own value a point is fitted by itself."""
LEFT = 1e-13
"""The share of squares that additions leave behind."""


class Points:
    """The fixed part of a fit and what the variance of one coefficient makes of it.

    Args:
        fixed: [points, coefficients].
        contrast: the combination of coefficients that is estimated.

    >>> x = np.arange(6.0)
    >>> line = Points(np.stack([np.ones(6), x], axis=1), [0.0, 1.0])
    >>> found = line.estimate(2 * x + [0.1, -0.1, 0.1, -0.1, 0.1, -0.1])
    >>> round(found.value, 3), round(found.error, 3), round(line.freedom, 2)
    (1.983, 0.025, 2.41)
    """

    def __init__(self, fixed: Floats, contrast: npt.ArrayLike) -> None:
        self.fixed = fixed
        self.inverse = np.linalg.pinv(fixed.T @ fixed)
        self.weights: Floats = fixed @ (self.inverse @ np.asarray(contrast, np.float64))
        self.left: Floats = 1 - np.einsum("ia,ab,ib->i", fixed, self.inverse, fixed)
        self.alone = bool((self.left < ALONE).any())
        d = self.weights**2 / np.maximum(self.left, ALONE)
        crossed = self.inverse @ (fixed.T @ (d[:, None] * fixed))
        squares = float((d * d * (2 * self.left - 1)).sum() + np.trace(crossed @ crossed))
        self.scale: Floats = d
        self.freedom = max(1.0, float((d * self.left).sum()) ** 2 / squares) if squares > 0 else 1.0

    def estimate(self, y: Floats, **options: Any) -> Estimate:
        """The coefficient of y; `options` are those of `estimate`."""
        value = float(self.weights @ y)
        if self.alone:
            why = "one point alone decides the fit: no interval, no test"
            return Estimate(value, units=len(y), reason=why)
        rest = y - self.fixed @ (self.inverse @ (self.fixed.T @ y))
        variance = float((self.scale * rest * rest).sum())
        if variance <= LEFT * float((y * y).mean() * (self.weights @ self.weights)):
            variance = 0.0
        return estimate(value, variance**0.5, self.freedom, units=len(y), **options)
