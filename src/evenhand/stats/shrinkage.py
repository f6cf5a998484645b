"""Sizes that know they were picked: empirical-Bayes shrinkage over a family of tests.

The largest of many estimates, and one that was reported because it crossed a line, is too large on
average. Given the prior of the true effects, their posterior mean is not, however it was picked
(Dawid 1994; Efron 2011). The prior is fitted to the family itself (Stephens 2017):

    x_i ~ N(theta_i, s_i^2),    theta_i ~ pi_0 delta_0 + sum_k pi_k N(0, sigma_k^2)

and one more test without an effect than there are, so that a small family is not believed too soon.
A clear effect keeps nearly all of its size; one that just crossed the line keeps a part of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
NULLS = 1.0
"""This many further tests without an effect are counted with every family."""
STEPS = 200
GRID = 2.0**0.5


def shrunken(values: npt.ArrayLike, p: npt.ArrayLike, unlisted: npt.ArrayLike = ()) -> Floats:
    """Posterior mean of every effect of a family; NaN where it is not defined.

    Args:
        values: estimates as distances from the ideal, on one scale.
        p: their two-sided p values; s_i = |x_i| / z(p_i), so that few degrees of freedom count.
        unlisted: p values of further tests of the family whose size is not known.

    >>> shrunken([0.10, 0.03, 0.002, -0.004], [1e-9, 0.004, 0.8, 0.6]).round(3).tolist()
    [0.095, 0.025, 0.0, -0.0]
    """
    x, chance = np.asarray(values, np.float64), np.asarray(p, np.float64)
    out = np.full(x.shape, np.nan)
    s = _errors(x, chance)
    known = np.isfinite(x) & np.isfinite(s)
    if not known.any():
        return out
    z = np.abs(_z(np.asarray(unlisted, np.float64)))
    z = z[np.isfinite(z)]
    typical = float(np.median(s[known]))
    x_all = np.concatenate([x[known], z * typical])
    s_all = np.concatenate([s[known], np.full(len(z), typical)])
    spread = _grid(x_all, s_all)
    weight = _fitted(x_all, s_all, spread)
    kept = spread**2 / (spread**2 + s_all[:, None] ** 2)
    out[known] = ((weight * kept).sum(axis=1) * x_all)[: known.sum()]
    return out


def _z(p: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(-ndtri(np.clip(p, 1e-300, 1.0) / 2), np.float64)


def _errors(x: Floats, p: Floats) -> Floats:
    """Standard errors of a normal estimate with this value and p; NaN for 0 or p of 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.abs(x) / _z(p)
    return np.where(np.isfinite(s) & (s > 0), s, np.nan)


def _grid(x: Floats, s: Floats) -> Floats:
    """Spreads of the prior, from a tenth of the finest error to twice the largest value."""
    low, high = s.min() / 10, max(2 * np.abs(x).max(), s.min() / 5)
    steps = int(np.ceil(np.log(high / low) / np.log(GRID)))
    return np.concatenate([[0.0], low * GRID ** np.arange(steps + 1)])


def _fitted(x: Floats, s: Floats, spread: Floats) -> Floats:
    """Posterior weights [tests, spreads] under the fitted prior, by EM."""
    variance = spread**2 + s[:, None] ** 2
    log = -0.5 * (x[:, None] ** 2 / variance + np.log(variance))
    like = np.exp(log - log.max(axis=1, keepdims=True))
    share = np.full(len(spread), 1 / len(spread))
    penalty = np.zeros(len(spread))
    penalty[0] = NULLS
    weight = like
    for _ in range(STEPS):
        weight = like * share
        weight /= weight.sum(axis=1, keepdims=True)
        share = weight.sum(axis=0) + penalty
        share /= share.sum()
    return np.asarray(weight, np.float64)
