"""How much of the variance each design factor carries: template, term, order, the rest."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats._draws import Floats, Ints

__all__ = ["VarianceShares", "variance_shares"]

REST = "rest"


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Variance components by factor; the last name is "rest" (noise and what was not listed).

    `components` are the moment estimates and may be negative when a factor carries nothing;
    `shares` count negative ones as 0 and sum to 1. `missing` counts NaN cells. `reason` says
    why shares are NaN, else it is empty.
    """

    names: tuple[str, ...]
    components: Floats
    shares: Floats
    mean: float
    n: int
    missing: int
    reason: str = ""

    def as_dict(self) -> dict[str, float]:
        """Shares by name."""
        return dict(zip(self.names, self.shares.tolist(), strict=True))


def variance_shares(
    values: ArrayLike, factors: Sequence[str], *, interactions: bool = False
) -> VarianceShares:
    """Share of variance by crossed factors, by the method of moments (Henderson 1953, I).

    Model: value = mean + sum_f effect_f(level) + rest, effects random with variance v_f. With
    T_f = sum over levels of (level sum)^2 / (level count), each T_f - T_0 is a known linear
    combination of the v_f, also when cells are missing; the equations are solved for v. For
    complete tables this is the usual analysis of variance. Shares lie in [0, 1].

    Args:
        values: array with one axis per factor; NaN marks a missing cell.
        factors: one name per axis.
        interactions: estimate two-way interactions as factors of their own ("a x b"); needs
            three or more factors.

    Returns:
        Components and shares; NaN with a reason when a factor has one level, when the cells
        do not identify the components, or when nothing varies.

    >>> variance_shares([[1.0, 2.0], [3.0, 4.0]], ["template", "term"]).as_dict()
    {'template': 0.8, 'term': 0.2, 'rest': 0.0}
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != len(factors):
        raise DataError(
            f"factors: {len(factors)} names for {data.ndim} axes. Accepted: one name per axis."
        )
    if interactions and data.ndim < 3:
        raise DataError(
            f"interactions: {data.ndim} factors leave no rest. Accepted: three or more factors."
        )
    known = np.isfinite(data)
    axes = list(np.nonzero(known))
    names, codes = [*factors], [*axes]
    if interactions:
        for i, j in itertools.combinations(range(data.ndim), 2):
            names.append(f"{factors[i]} x {factors[j]}")
            codes.append(axes[i] * data.shape[j] + axes[j])
    names.append(REST)
    y = data[known]
    missing = int(data.size - y.size)
    mean = float(y.mean()) if y.size else float("nan")
    components, reason = _components(y, codes)
    shares = np.full(len(names), np.nan)
    if not reason:
        positive = np.maximum(components, 0.0)
        # Rounding of the moments must not look like a share.
        positive[positive < 1e-12 * positive.sum()] = 0.0
        shares = positive / positive.sum()
    return VarianceShares(tuple(names), components, shares, mean, int(y.size), missing, reason)


def _components(y: Floats, codes: list[Ints]) -> tuple[Floats, str]:
    """Solve the moment equations, or say why they have no solution."""
    size = len(codes) + 1
    nan = np.full(size, np.nan)
    n = len(y)
    if n < 2:
        return nan, "fewer than two values"
    if any(len(np.unique(c)) < 2 for c in codes):
        return nan, "a factor has one level only"
    y = y - y.mean()
    if not np.ptp(y) > 0:
        return nan, "all values are equal"
    nothing = np.zeros(n, dtype=np.intp)
    listed = [*codes, np.arange(n)]
    base = np.array([_overlap(nothing, g) for g in listed])
    left = np.array([[_overlap(f, g) for g in listed] for f in listed]) - base
    right = np.array([_level_moment(y, f) for f in listed]) - _level_moment(y, nothing)
    if np.linalg.matrix_rank(left) < size:
        return nan, "the cells present do not tell the factors apart"
    return np.linalg.solve(left, right), ""


def _level_moment(y: Floats, codes: Ints) -> float:
    """Sum over levels of (level sum)^2 / (level count)."""
    counts = np.bincount(codes)
    sums = np.bincount(codes, weights=y)
    used = counts > 0
    return float((sums[used] ** 2 / counts[used]).sum())


def _overlap(codes: Ints, other: Ints) -> float:
    """Weight of the variance of `other` in the moment of `codes`: sum n_fg^2 / n_f."""
    counts = np.bincount(codes)
    width = int(other.max()) + 1
    pairs, joint = np.unique(codes.astype(np.int64) * width + other, return_counts=True)
    return float((joint.astype(np.float64) ** 2 / counts[pairs // width]).sum())
