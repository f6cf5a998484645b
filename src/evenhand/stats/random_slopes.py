"""A linear mixed model with random intercepts and slopes by group, fitted by likelihood.

    y = X b + Z_g u_g + e,      u_g ~ N(0, s2 L L'),      e ~ N(0, s2 I)

L is lower triangular and unrestricted, as in lme4 (Bates et al. 2015). Given L, b and s2 have a
closed form, so only the entries of L are searched. Every group enters through products as large as
the number of random effects, whatever its rows. REML by default; p and intervals are Wald's.

Verdicts elsewhere rest on moments and t (`stats.mixed`); this is the model that papers report.

>>> rng = np.random.default_rng(0)
>>> groups = np.repeat(np.arange(40), 4)
>>> x = np.tile([0.0, 0.0, 1.0, 1.0], 40)
>>> y = 1 + 0.5 * x + rng.normal(0, 1, 40)[groups] + rng.normal(0, 0.3, 160)
>>> fit = random_slopes(y, np.stack([np.ones(160), x], axis=1), groups)
>>> fit.converged, fit.b.round(1).tolist(), bool(fit.p[1] < 1e-6)
(True, [1.0, 0.5], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError

Floats = npt.NDArray[np.float64]
NORMAL = 1.959963984540054
SINGULAR = 1e-4
"""A diagonal of L (in residual deviations) below which the covariance is at its edge."""
SAME = 1e-12
"""Share of the variance that additions leave behind."""
FLAT = 1e-3
"""Largest slope of the deviance at a fit that has arrived."""
STARTS = (1.0, 0.3, 10.0)
"""Deviations of random effects, in residual ones, from which the search sets out in turn, until it
arrives: with many slopes the deviance has flat stretches."""


@dataclass(frozen=True)
class MixedFit:
    """Fixed effects with Wald intervals, and the covariance of the random effects.

    Attributes:
        b, error, low, high, p: one per column of X.
        covariance: of the random effects.
        residual: variance of what is left.
        loglikelihood: at the fit, restricted where REML was asked for.
        converged: the search ended at a flat place.
        singular: some random effect has no variance of its own.
    """

    b: Floats
    error: Floats
    low: Floats
    high: Floats
    p: Floats
    covariance: Floats
    residual: float
    loglikelihood: float
    converged: bool
    singular: bool


class _Sums:
    """Products of each group's rows."""

    def __init__(self, y: Floats, x: Floats, z: Floats, codes: npt.NDArray[Any]) -> None:
        k, q = int(codes.max()) + 1, z.shape[1]
        both = np.concatenate([x, y[:, None]], axis=1)
        self.zz, self.zw = np.zeros((k, q, q)), np.zeros((k, q, both.shape[1]))
        np.add.at(self.zz, codes, z[:, :, None] * z[:, None, :])
        np.add.at(self.zw, codes, z[:, :, None] * both[:, None, :])
        self.ww = both.T @ both
        self.n, self.p = x.shape


def random_slopes(
    y: npt.ArrayLike,
    x: npt.ArrayLike,
    groups: Sequence[Any] | npt.NDArray[Any],
    z: npt.ArrayLike | None = None,
    *,
    restricted: bool = True,
) -> MixedFit:
    """Fit the model.

    Args:
        y: one value per row.
        x: fixed part [rows, effects], with a column of ones if there is to be a mean.
        groups: which group each row is of.
        z: random part [rows, effects]; by default an intercept.
        restricted: REML; else ML.
    """
    values, fixed = np.asarray(y, np.float64), np.asarray(x, np.float64)
    random = np.ones((len(values), 1)) if z is None else np.asarray(z, np.float64)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(values) <= fixed.shape[1] or np.linalg.matrix_rank(fixed) < fixed.shape[1]:
        raise DataError(
            f"mixed model: {len(values)} rows and {fixed.shape[1]} fixed effects that they cannot "
            "tell apart. Give more rows, or fewer factors."
        )
    if not _left(values, fixed, random, codes) > SAME * max(float(values.var()), SAME):
        raise DataError(
            f"mixed model: {len(values)} rows in {codes.max() + 1} groups leave nothing once every "
            "group has effects of its own. Give more rows per group, or fewer random effects."
        )
    from scipy.optimize import minimize

    sums, q = _Sums(values, fixed, random, codes), random.shape[1]
    lower = np.tril_indices(q)
    found = None
    for size in STARTS:
        tried = minimize(
            lambda theta: _steered(_full(theta, lower, q), sums, restricted, lower),
            size * np.eye(q)[lower],
            jac=True,
            method="BFGS",
            options={"gtol": 1e-6, "maxiter": 1000},
        )
        found = tried if found is None or tried.fun < found.fun else found
        if np.max(np.abs(found.jac)) < FLAT:
            break
    assert found is not None
    root = _full(found.x, lower, q)
    deviance, b, residual, inverse = _deviance(root, sums, restricted)
    error = np.sqrt(np.diag(inverse) * residual)
    from scipy.special import ndtr

    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * ndtr(-np.abs(b / error))
    return MixedFit(
        b,
        error,
        b - NORMAL * error,
        b + NORMAL * error,
        np.asarray(p, np.float64),
        residual * root @ root.T,
        residual,
        -deviance / 2,
        bool(np.max(np.abs(found.jac)) < FLAT),
        bool(np.min(np.linalg.svd(root, compute_uv=False)) < SINGULAR),
    )


def _left(y: Floats, x: Floats, z: Floats, codes: npt.NDArray[Any]) -> float:
    """Variance left when every group has its own random effects as fixed ones; 0: none is free."""
    both = np.concatenate([x, y[:, None]], axis=1)
    free = len(y)
    for group in range(int(codes.max()) + 1):
        at = codes == group
        own = z[at]
        both[at] -= own @ (np.linalg.pinv(own) @ both[at])
        free -= int(np.linalg.matrix_rank(own))
    rest = both[:, -1] - both[:, :-1] @ np.linalg.lstsq(both[:, :-1], both[:, -1], rcond=1e-9)[0]
    return float(rest @ rest) / free if free > 0 else 0.0


def _full(theta: Floats, lower: tuple[Any, ...], q: int) -> Floats:
    root = np.zeros((q, q))
    root[lower] = theta
    return root


def _steered(
    root: Floats, sums: _Sums, restricted: bool, lower: tuple[Any, ...]
) -> tuple[float, Floats]:
    """The deviance and its slope along the entries of L.

    The slope along M = L L' is sum_g Z' V^-1 Z - Z' V^-1 X C X' V^-1 Z (REML only) - Z' V^-1 r
    r' V^-1 Z / s2 with C = (X' V^-1 X)^-1 and r = y - X b; along L it is twice that times L.
    """
    deviance, b, residual, inverse = _deviance(root, sums, restricted)
    taken = np.linalg.solve(np.eye(len(root)) + root.T @ sums.zz @ root, root.T)
    left = np.eye(len(root)) - sums.zz @ (root @ taken)
    zz, zw = left @ sums.zz, left @ sums.zw
    x, rest = zw[:, :, :-1], zw[:, :, -1] - zw[:, :, :-1] @ b
    slope = zz.sum(axis=0) - np.einsum("gi,gj->ij", rest, rest) / residual
    if restricted:
        slope -= np.einsum("gia,ab,gjb->ij", x, inverse, x)
    return deviance, (2.0 * slope @ root)[lower]


def _deviance(root: Floats, sums: _Sums, restricted: bool) -> tuple[float, Floats, float, Floats]:
    """-2 log-likelihood with b and s2 at their best, these, and (X' V^-1 X)^-1.

    V_g = I + Z_g L L' Z_g', whose inverse needs (I + L' Z_g' Z_g L)^-1 only.
    """
    inner = np.eye(len(root)) + root.T @ sums.zz @ root
    right = root.T @ sums.zw
    both = sums.ww - np.einsum("gij,gik->jk", right, np.linalg.solve(inner, right))
    p = sums.p
    inverse = np.linalg.inv(both[:p, :p])
    b = inverse @ both[:p, p]
    rest = max(float(both[p, p] - both[:p, p] @ b), 1e-300)
    free = sums.n - p if restricted else sums.n
    deviance = np.linalg.slogdet(inner)[1].sum() + free * (1 + np.log(2 * np.pi * rest / free))
    if restricted:
        deviance += np.linalg.slogdet(both[:p, :p])[1]
    return float(deviance), b, rest / free, inverse
