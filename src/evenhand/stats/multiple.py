"""The correction for many tests: Benjamini-Hochberg.

Any shape goes in, the same shape comes out. NaN (an undefined test) stays NaN and does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats._draws import Floats


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted p (q) that controls the false-discovery rate (Benjamini & Hochberg 1995).

    With p sorted upwards, q_(i) = min over j >= i of min(1, p_(j) * m / j). Where q <= level, the
    expected share of false findings is at most the level, for independent or positively
    dependent tests. Range [p, 1].

    >>> benjamini_hochberg([0.05, 0.06, 0.9, 0.01]).round(4).tolist()
    [0.08, 0.08, 0.9, 0.04]
    """
    values = np.asarray(p, dtype=np.float64)
    defined = ~np.isnan(values)
    known = values[defined]
    wrong = known[~((known >= 0) & (known <= 1))]
    if wrong.size:
        raise DataError(f"p: {float(wrong[0])!r} is not a probability. Accepted: 0 to 1, or NaN.")
    order = np.argsort(known, kind="stable")
    ranks = np.arange(1, len(known) + 1)
    stepped = np.minimum.accumulate((known[order] * (len(known) / ranks))[::-1])[::-1]
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(stepped, 1.0)
    out = np.full(values.shape, np.nan)
    out[defined] = adjusted
    return out
