"""The smallest effect a run could have seen: what "no difference detected" leaves open."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats._checks import share
from evenhand.stats._resample import Value, plain

__all__ = ["detectable_effect"]


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
