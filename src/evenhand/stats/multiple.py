"""Corrections for many tests: Benjamini-Hochberg, Benjamini-Yekutieli, Holm.

Any shape goes in, the same shape comes out. NaN (an undefined test) stays NaN and does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError
from evenhand.stats._draws import Floats, Ints


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted p (q) that controls the false-discovery rate (Benjamini & Hochberg 1995).

    With p sorted upwards, q_(i) = min over j >= i of min(1, p_(j) * m / j). Where q <= level, the
    expected share of false findings is at most the level, for independent or positively
    dependent tests. Range [p, 1].

    >>> benjamini_hochberg([0.05, 0.06, 0.9, 0.01]).round(4).tolist()
    [0.08, 0.08, 0.9, 0.04]
    """
    return _step_up(p, harmonic=False)


def benjamini_yekutieli(p: ArrayLike) -> Floats:
    """Adjusted p (q) that controls the false-discovery rate under any dependence.

    q of Benjamini-Hochberg times 1 + 1/2 + ... + 1/m, at most 1 (Benjamini & Yekutieli 2001).

    >>> benjamini_yekutieli([0.01, 0.04]).round(4).tolist()
    [0.03, 0.06]
    """
    return _step_up(p, harmonic=True)


def holm(p: ArrayLike) -> Floats:
    """Adjusted p that controls the chance of even one false finding (Holm 1979).

    With p sorted upwards, p'_(i) = max over j <= i of min(1, (m - j + 1) * p_(j)). Needs no
    assumption about dependence. Range [p, 1].

    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    values, out, defined = _checked(p)
    known = values[defined]
    order = np.argsort(known, kind="stable")
    m = len(known)
    stepped = np.maximum.accumulate(known[order] * (m - np.arange(m)))
    return _put(out, defined, order, stepped)


def _step_up(p: ArrayLike, *, harmonic: bool) -> Floats:
    values, out, defined = _checked(p)
    known = values[defined]
    order = np.argsort(known, kind="stable")
    ranks = np.arange(1, len(known) + 1)
    factor = len(known) * (float((1 / ranks).sum()) if harmonic else 1.0)
    stepped = np.minimum.accumulate((known[order] * (factor / ranks))[::-1])[::-1]
    return _put(out, defined, order, stepped)


def _checked(p: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool]]:
    values = np.asarray(p, dtype=np.float64)
    defined = ~np.isnan(values)
    wrong = values[defined & ~((values >= 0) & (values <= 1))]
    if wrong.size:
        raise DataError(
            f"p: {float(wrong.flat[0])!r} is not a probability. Accepted: 0 to 1, or NaN."
        )
    return values, np.full(values.shape, np.nan), defined


def _put(
    out: Floats,
    defined: NDArray[np.bool],
    order: Ints,
    stepped: Floats,
) -> Floats:
    """Write the stepped values back in the order of the input, at most 1."""
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(stepped, 1.0)
    out[defined] = adjusted
    return out
