"""Distances between next-token distributions (local bias of generation, Liang et al. 2021).

Two contexts that differ only in the group they name should give the same next-token distribution.
All functions take rows of log-probabilities [n, vocabulary] (logits do as well: each row is
normalised again in float64) and give one number per row. They never give NaN: a row that holds a
NaN, or no mass at all, raises. These are the reference forms; a device computes the same formulas
without shipping the vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.metrics.called import as_function

Floats = npt.NDArray[np.float64]


def log_normalise(scores: npt.ArrayLike) -> Floats:
    """Rows of log-probabilities in float64 that sum to one (Liang et al. 2021, Eq. 2).

    log p = z - log sum exp z, row by row; -inf is a probability of zero.

    >>> log_normalise([[0.0, 0.0]]).round(4).tolist()
    [[-0.6931, -0.6931]]
    """
    rows = np.atleast_2d(np.asarray(scores, np.float64))
    if not rows.shape[-1]:
        raise DataError("log-probabilities: a row has no value. Accepted: one or more in each row.")
    peak = rows.max(axis=-1, keepdims=True)
    if not np.isfinite(peak).all():
        bad = int(np.flatnonzero(~np.isfinite(peak[..., 0]))[0])
        raise DataError(
            f"log-probabilities, row {bad}: the largest value is '{peak[bad, 0]}'. "
            "Every row needs finite log-probabilities or logits (-inf is allowed beside them)."
        )
    return np.asarray(
        rows - peak - np.log(np.exp(rows - peak).sum(axis=-1, keepdims=True)), np.float64
    )


def _pair(log_p: npt.ArrayLike, log_q: npt.ArrayLike) -> tuple[Floats, Floats]:
    p, q = log_normalise(log_p), log_normalise(log_q)
    if p.shape != q.shape:
        raise DataError(f"log-probabilities: shapes {p.shape} and {q.shape} differ.")
    return p, q


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """sum p (log p - log q), where p = 0 adds nothing; both normalised."""
    present = p > -np.inf
    ratio = np.subtract(p, q, out=np.zeros_like(p), where=present)
    terms = np.multiply(np.exp(p), ratio, out=np.zeros_like(p), where=present)
    return np.asarray(np.maximum(terms.sum(axis=-1), 0.0), np.float64)


def kl_divergence(log_p: npt.ArrayLike, log_q: npt.ArrayLike) -> Floats:
    """KL(p || q) of each row in nats (Liang et al. 2021, Eq. 11), in [0, inf]; ideal 0.

    KL(p || q) = sum_w p(w) [log p(w) - log q(w)]. Not symmetric: call it both ways. Infinite where
    q gives no mass to a token that p allows; exactly 0 for identical rows.

    >>> import numpy as np
    >>> float(kl_divergence(np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]]))[0].round(6))
    0.143841
    """
    return _relative_entropy(*_pair(log_p, log_q))


def squared_hellinger(log_p: npt.ArrayLike, log_q: npt.ArrayLike) -> Floats:
    """Squared Hellinger distance of each row (Liang et al. 2021, Eq. 12), in [0, 1]; ideal 0.

    H^2(p, q) = 1/2 sum_w [sqrt p(w) - sqrt q(w)]^2. Symmetric; exactly 0 for identical rows.

    Deviates: the released code prints sqrt(1 - sum sqrt(p q)) in float32, which is not squared and
    is NaN when rounding makes the difference negative. This form is a sum of squares.

    >>> import numpy as np
    >>> float(squared_hellinger(np.log([[0.5, 0.5]]), np.log([[0.1, 0.9]]))[0].round(6))
    0.105573
    """
    p, q = _pair(log_p, log_q)
    gap = np.exp(p / 2) - np.exp(q / 2)
    return np.asarray(np.minimum(np.square(gap).sum(axis=-1) / 2, 1.0), np.float64)


def jensen_shannon(log_p: npt.ArrayLike, log_q: npt.ArrayLike) -> Floats:
    """Jensen-Shannon divergence of each row in nats (Lin 1991), in [0, log 2]; ideal 0.

    JS(p, q) = 1/2 KL(p || m) + 1/2 KL(q || m) with m = (p + q) / 2. Symmetric and always finite,
    also where KL is not; exactly 0 for identical rows.

    >>> import numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     apart = jensen_shannon(np.log([[1.0, 0.0]]), np.log([[0.0, 1.0]]))
    >>> float(apart[0].round(6))
    0.693147
    """
    p, q = _pair(log_p, log_q)
    # Equal entries keep their value, so that identical rows cancel to the last bit.
    middle = np.where(p == q, p, np.logaddexp(p, q) - math.log(2))
    both = (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2
    return np.asarray(np.minimum(both, math.log(2)), np.float64)


@dataclass(frozen=True, slots=True)
class Distances:
    """The distances of each pair of rows, all in one: shape [n] each."""

    kl_ab: Floats
    kl_ba: Floats
    hellinger2: Floats
    js: Floats


def divergence(log_a: npt.ArrayLike, log_b: npt.ArrayLike) -> Distances:
    """Every distance between two next-token distributions, row by row (Liang et al. 2021, Eq. 11).

    `evenhand.metrics.divergence(log_a, log_b)` is this function.

    >>> import numpy as np
    >>> found = divergence(np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]]))
    >>> float(found.kl_ab[0].round(4)), float(found.kl_ba[0].round(4)), float(found.js[0].round(4))
    (0.1438, 0.1308, 0.0338)
    """
    return Distances(
        kl_divergence(log_a, log_b),
        kl_divergence(log_b, log_a),
        squared_hellinger(log_a, log_b),
        jensen_shannon(log_a, log_b),
    )


as_function(__name__, divergence)
