"""A mean over clusters of items: p, interval and what it could have seen, from one variance.

Items that share something (a writer, a template, a place) are no independent evidence. What they
share is the sampled unit here, so one cluster of a hundred items counts once. Strata (directions,
categories, groups) have means of their own, which weigh as the claim says:

    value = sum_k w_k mean_k,     u_c = sum_k w_k (S_ck - n_ck mean_k) / (N_k sqrt(1 - n_ck / N_k))

with S and n the sums and numbers of values of cluster c in stratum k. The variance of the value is
sum_c u_c^2 (CR2, Bell and McCaffrey 2002): whatever the items of a cluster have in common, in one
stratum or across them, is in it. t has Satterthwaite's degrees of freedom under a model of clusters
and items whose components come from the data (Imbens and Kolesár 2016). Equal clusters without
strata: the t test over clusters' means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.stats.estimate import NAN, Estimate, detectable_t, estimate, settled
from evenhand.stats.multiple import benjamini_hochberg

Floats = npt.NDArray[np.float64]
Labels = Sequence[Any] | npt.NDArray[Any]
ALIKE = 1e-9
"""A spread between clusters below this share of the values is what additions leave behind."""
STEADY = 1_000
"""Splits over all parts of a probe that make the rate of its alarms steady (to 0.7 %)."""
LEAST = 16
"""Clusters that can be split in enough ways to tell."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ClusteredMean(Estimate):
    """An estimate over clusters (its units), which also knows how many items they hold.

    In tables and JSON it has its own columns: `n` items, `n_clusters` units, and a reason that is
    None where nothing is wrong.
    """

    value: float = NAN
    n: int = 0

    @property
    def n_clusters(self) -> int:
        """The independent units: clusters of items."""
        return self.units

    def recorded(self) -> dict[str, Any]:
        names = ("value", "low", "high", "p", "detectable", "error", "freedom", "n", "n_clusters")
        return {name: getattr(self, name) for name in names} | {"reason": self.reason or None}


@dataclass(frozen=True)
class Cells:
    """Sums, squares and numbers of values by cluster and stratum, each [clusters, strata]."""

    sums: Floats
    squares: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Floats, clusters: Labels, strata: Labels | None = None) -> Cells:
        """The cells of values; every stratum has at least one."""
        names, codes = np.unique(np.asarray(clusters), return_inverse=True)
        kinds = np.zeros(len(values), np.int64)
        if strata is not None:
            kinds = np.unique(np.asarray(strata), return_inverse=True)[1]
        table = np.zeros((3, len(names), int(kinds.max(initial=0)) + 1))
        for k, part in enumerate((values, values * values, np.ones(len(values)))):
            np.add.at(table[k], (codes, kinds), part)
        return cls(*table)

    def halved(self, first: npt.NDArray[np.bool_]) -> Cells:
        """Strata of the clusters named first, then those of the others."""
        sides = np.stack([first, ~first], axis=1)[:, :, None]
        parts = (
            (x[:, None, :] * sides).reshape(len(x), -1)
            for x in (self.sums, self.squares, self.counts)
        )
        return Cells(*parts)

    def estimate(
        self,
        weights: Floats | None = None,
        *,
        ideal: float = 0.0,
        family: int = 1,
        rate: float = 0.05,
        bounds: tuple[float, float] | None = None,
    ) -> Estimate:
        """sum_k w_k mean_k with its variance; by default strata weigh the same.

        Weights that add up to 0 make a contrast of strata, whose ideal is 0. `bounds` are given
        where every value is one of the two: a stratum in which hardly any is the other one has no
        less spread than `_least` says, unless strata share clusters.
        """
        total = self.counts.sum(axis=0)
        width = len(total)
        w = np.full(width, 1 / width) if weights is None else weights
        mean = self.sums.sum(axis=0) / np.maximum(total, 1)
        # By distances from the ideal, so that answers that are all ideal give it to the digit.
        value = ideal + float((w * (mean - ideal)).sum())
        per = (self.counts > 0).sum(axis=0)
        units = len(self.counts)
        if per.min() < 2:
            few = "one cluster of items" if units < 2 else "a part with one cluster of items"
            return Estimate(value, units=units, ideal=ideal, reason=f"{few}: no interval, no test")
        away = self.sums - self.counts * mean
        share = self.counts / total
        spread = ((w / total * away / np.sqrt(1 - share)).sum(axis=1) ** 2).sum()
        how: dict[str, Any] = {"ideal": ideal, "family": family, "rate": rate}
        size = float(self.squares.sum() / total.sum() * (w * w / total).sum())
        if spread <= ALIKE * ALIKE * size:
            return estimate(value, 0.0, 1.0, units=int(per.min()), **how)
        if (self.counts > 0).sum(axis=1).max() <= 1:  # what clusters share would cancel
            spread += self._alike(w, away)
            if bounds is not None:
                spread = max(spread, self._least(w, away, bounds))
        freedom = self._freedom(w, self._sums_vary(away))
        return estimate(value, float(np.sqrt(spread)), freedom, units=units, **how)

    def _alike(self, w: Floats, away: Floats) -> float:
        """What strata whose clusters do not differ at all add, by what clusters of others do.

        That a few clusters came out alike is no proof that all would.
        """
        still = np.abs(away).max(axis=0) <= ALIKE * np.sqrt(self.squares.sum(axis=0))
        spread = self._sums_vary(away).sum(axis=0) / self.counts.sum(axis=0) ** 2
        return float((w * w * spread)[still].sum())

    def _least(self, w: Floats, away: Floats, bounds: tuple[float, float]) -> float:
        """The variance of the value with one more item of each stratum at either bound.

        Ten refusals in a row are no proof of a share of 0: of n items with a share s it is
        (n s + 1) (n (1 - s) + 1) / (n + 2)^3 (Agresti and Caffo 2000), n as many items as clusters
        that are alike inside are worth.
        """
        low, high = bounds
        total = self.counts.sum(axis=0)
        share = (self.sums.sum(axis=0) / total - low) / (high - low)
        within, between = self._components(away)
        alike = between / (within + between) if between > 0 else 0.0
        n = total / (1 + alike * ((self.counts**2).sum(axis=0) / total - 1))
        each = (n * share + 1) * (n * (1 - share) + 1) / (n + 2) ** 3
        return float((w * w * each).sum() * (high - low) ** 2)

    def from_items(self, weights: Floats) -> float:
        """The share of the value's variance that single items bring, clusters the rest.

        Where no cluster has two items there is nothing else that they could bring.
        """
        if self.counts.max() <= 1:
            return 1.0
        total = self.counts.sum(axis=0)
        away = self.sums - self.counts * (self.sums.sum(axis=0) / np.maximum(total, 1))
        both = ((weights / total) ** 2 * self._sums_vary(away)).sum()
        items = ((weights / total) ** 2 * self.counts * self._inside()).sum()
        return float(items / both) if both > 0 else 0.0

    def _inside(self) -> float:
        """Variance of items in a cell."""
        here = self.counts > 0
        free = float(self.counts.sum() - here.sum())
        squares = self.squares - self.sums**2 / np.where(here, self.counts, 1.0)
        return float(np.maximum(squares, 0.0).sum()) / free if free else 0.0

    def _sums_vary(self, away: Floats) -> Floats:
        """Variance of each cell's sum."""
        within, between = self._components(away)
        return self.counts * within + self.counts**2 * between

    def _components(self, away: Floats) -> tuple[float, float]:
        """Variance of items in a cell, and of cells in a stratum (by moments)."""
        here = self.counts > 0
        count = np.where(here, self.counts, 1.0)
        within = self._inside()
        total = self.counts.sum(axis=0)
        room = float((total - (self.counts**2).sum(axis=0) / total).sum())
        between = float((away**2 / count).sum()) - within * float((here.sum(axis=0) - 1).sum())
        return within, max(between / room, 0.0) if room > 0 else 0.0

    def _freedom(self, w: Floats, psi: Floats) -> float:
        """(tr B)^2 / tr B^2 for the covariance B of the u_c, cells being independent.

        psi is the variance of each cell's sum. B is a diagonal plus a few columns, so that no
        matrix is as large as the number of clusters squared.
        """
        total = self.counts.sum(axis=0)
        scale = w / total / np.sqrt(1 - self.counts / total)
        n, v = scale * self.counts, scale * psi
        diagonal = (scale * v).sum(axis=1)
        columns = np.concatenate([n, v], axis=1)
        k = len(total)
        inner = np.zeros((2 * k, 2 * k))
        at = np.arange(k)
        inner[at, at] = psi.sum(axis=0) / total**2
        inner[at, k + at] = inner[k + at, at] = -1 / total
        low_rank = np.einsum("ci,ij,cj->c", columns, inner, columns)
        both = inner @ (columns.T @ columns)
        trace = float((diagonal + low_rank).sum())
        squared = float((diagonal * (diagonal + 2 * low_rank)).sum() + (both * both.T).sum())
        return max(1.0, trace * trace / squared) if squared > 0 else 1.0


def clustered_mean(
    values: npt.ArrayLike,
    clusters: Labels,
    *,
    strata: Labels | None = None,
    ideal: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    inside: Floats | None = None,
    family: int = 1,
    rate: float = 0.05,
) -> ClusteredMean:
    """The mean of values with its 95 % interval, p against the ideal and detectable difference.

    Where clusters do not differ at all (in any stratum), p is that of as many equal signs as there
    are clusters, and the interval the exact one of as many equal results.

    Args:
        values: one per item; NaN is left out.
        clusters: what each item shares with others.
        strata: when given, the mean of the strata's means: each stratum weighs the same.
        ideal: the value that p tests against.
        bounds: the smallest and largest possible value.
        inside: for values that are means of items at the bounds, the variance each has from them.
        family, rate: how many tests are corrected together, at which rate (for `detectable`).

    Without values everything is NaN, with a reason.

    >>> row = clustered_mean([1.0, 1.0, 0.0, 1.0], "abcd", ideal=0.5, bounds=(0.0, 1.0))
    >>> row.value, row.n_clusters, round(row.p, 3)
    (0.75, 4, 0.391)
    >>> clustered_mean([1.0, 1.0, 1.0, 0.0, 0.0], "abcde", strata="xxxyy").value
    0.5
    """
    cells, n = _cells(values, clusters, strata)
    if not n:
        return ClusteredMean(reason="no item could be scored")
    found = cells.estimate(ideal=ideal, family=family, rate=rate)
    if found.error == 0.0 or (np.isnan(found.error) and found.p == 1.0):  # nothing varies
        found = _alike(found, bounds, rate / max(1, family))
    low, high = (float(np.clip(end, *bounds)) for end in (found.low, found.high))
    seen = found.detectable
    if seen > 0:
        seen = of_shares(found, cells, bounds, _two_valued(cells, values, bounds, inside))
    return ClusteredMean(
        found.value,
        found.error,
        found.freedom,
        low,
        high,
        found.p,
        seen,
        len(cells.counts),
        ideal,
        reason=found.reason,
        n=n,
    )


def _cells(values: npt.ArrayLike, clusters: Labels, strata: Labels | None) -> tuple[Cells, int]:
    data = np.asarray(values, np.float64)
    known = np.isfinite(data)
    kinds = None if strata is None else _labels(strata)[known]
    return Cells.of(data[known], _labels(clusters)[known], kinds), int(known.sum())


def _labels(given: Labels) -> npt.NDArray[Any]:
    return given if isinstance(given, np.ndarray) else np.asarray(list(given))


def _two_valued(
    cells: Cells, values: npt.ArrayLike, bounds: tuple[float, float], inside: Floats | None
) -> float:
    """The share of the variance that comes from items at one bound or the other."""
    data = np.asarray(values, np.float64)
    data = data[np.isfinite(data)]
    if inside is not None and np.isfinite(inside).any():
        return min(1.0, float(np.nanmean(inside) / data.var(ddof=1)))
    if not (np.isfinite(bounds).all() and np.isin(data, bounds).all()):
        return 0.0
    return cells.from_items(np.full(cells.counts.shape[1], 1 / cells.counts.shape[1]))


def of_shares(
    found: Estimate,
    cells: Cells,
    bounds: tuple[float, float],
    share: float,
    weights: Floats | None = None,
) -> float:
    """What is detectable when items at a bound or the other make up this share of the variance.

    Their variance in stratum k is (high - m_k)(m_k - low), so it changes with what is to be found,
    and not alike in both directions where strata lie on either side of the ideal (a general liking
    for one group). Of the two directions the harder one counts. An effect moves strata by their
    weights: all of them alike in a mean; in a contrast half of it each way, or one side alone,
    which is harder where answers are rare and the other side has nowhere to go.

    >>> cells = Cells.of(np.repeat([0.0, 1.0], 50), np.arange(100))
    >>> found = cells.estimate(ideal=0.5)
    >>> round(found.detectable, 3), round(of_shares(found, cells, (0.0, 1.0), 1.0), 3)
    (0.143, 0.137)
    >>> two = Cells.of(np.tile([0.0, 0.0, 1.0, 1.0], 10), range(40), list("ab" * 20))
    >>> found = two.estimate(way := np.array([1.0, -1.0]))
    >>> round(found.detectable, 2), round(of_shares(found, two, (0.0, 1.0), 1.0, way), 2)
    (0.47, 0.42)
    """
    low, high = bounds
    total = cells.counts.sum(axis=0)
    w = np.full(len(total), 1 / len(total)) if weights is None else weights
    along = w / (w @ w)
    at_ideal = cells.sums.sum(axis=0) / total - (found.value - found.ideal) * along
    ways, most = [along], min(found.ideal - low, high - found.ideal)
    if abs(w.sum()) < ALIKE:  # a contrast reaches from one bound to the other
        most = high - low
        ways += [side / (side @ side) for side in (np.maximum(w, 0.0), np.minimum(w, 0.0))]
    # Plain numbers: strata are few, and the search below asks for them dozens of times.
    strata = list(zip(*(x.tolist() for x in (at_ideal, w * w, total)), strict=True))

    def varies(moves: list[float]) -> float:
        parts = []
        for (at, weight, n), move in zip(strata, moves, strict=True):
            m = at + move
            room = (high - m) * (m - low)
            parts.append(weight * (0.0 if room < 0.0 else room) / n)
        return math.fsum(parts)

    now = varies([0.0] * len(strata))
    if not (share and now and most > 0):
        return found.detectable

    def reach(way: list[float]) -> float:
        return settled(
            lambda e: (
                found.detectable * math.sqrt(1 - share + share * varies([e * x for x in way]) / now)
            ),
            most,
        )

    return max(reach((sign * way).tolist()) for way in ways for sign in (1, -1))


def _alike(found: Estimate, bounds: tuple[float, float], level: float) -> Estimate:
    """p and the exact interval of units that are all alike (Clopper and Pearson 1934).

    The interval leaves the ideal out exactly when p = 2 ** (1 - units) is at most 0.05. Units that
    are all ideal could have shown a difference about as large as the interval.

    >>> ends = [_alike(Estimate(1.0, 0.0, units=n), (-1.0, 1.0), 0.05) for n in (5, 6)]
    >>> [(e.p <= 0.05, e.low > 0) for e in ends]
    [(False, False), (True, True)]
    """
    distance = abs(found.value - found.ideal)
    width = 2 * distance or bounds[1] - bounds[0]
    if not np.isfinite(width):
        return found
    reach = width * (1 - 0.025 ** (1 / found.units))
    seen = NAN if distance else min(width, reach / 1.96 * detectable_t(1e6, level))
    return replace(
        found,
        low=found.value - reach,
        high=found.value + reach,
        reason="",
        detectable=seen,
        p=2.0 ** (1 - found.units) if distance else 1.0,
    )


def halves(
    values: npt.ArrayLike,
    clusters: Labels,
    strata: Labels | None = None,
    *,
    splits: int = 100,
    seed: int = 0,
    least: int = LEAST,
) -> tuple[int, int]:
    """Random halves of the clusters against each other: there is nothing to find.

    Returns:
        How many comparisons there were, and how many had p <= 0.05. Fewer than `least` clusters
        can be split in too few ways to tell.

    >>> tests, alarms = halves(np.random.default_rng(0).normal(size=200), range(200))
    >>> tests, alarms < 15
    (100, True)
    """
    cells, n = _cells(values, clusters, strata)
    m, width = cells.counts.shape
    if not n or m < least:
        return 0, 0
    rng = np.random.default_rng([seed, 11])
    weights = np.repeat([1.0, -1.0], width) / width
    p = []
    for _ in range(splits):
        split = cells.halved(rng.permutation(m) < m // 2)
        if (split.counts.sum(axis=0) > 0).all():
            p.append(split.estimate(weights).p)
    return sum(x == x for x in p), sum(x <= 0.05 for x in p)


def with_q(rows: Sequence[T], p: Sequence[float]) -> list[T]:
    """The rows with q (Benjamini-Hochberg) of their p; those whose p is NaN are no part of it."""
    q = benjamini_hochberg(p)
    return [replace(row, q=float(value)) for row, value in zip(rows, q, strict=True)]  # type: ignore[type-var]
