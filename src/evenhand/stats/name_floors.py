"""What two numbers of a pair network read when groups do not matter, but every name does.

A model likes some names more than others. In a network of pairs between two groups that alone makes
preferences strong and one-sided, so flipping pairs (`pair_network.noise_floors`) asks too little:
it takes a liking for names for a preference between groups. Here a pair is

    c(i, j) = s(i) - s(j) + rest(i, j)

with strengths s by least squares, one vector over attributes per name. If groups do not matter,
names are draws of one kind whatever their group, so strengths are dealt out anew among the names
that are linked with each other, and the numbers are taken again. What a name likes over attributes,
and what a pair and its templates add, stays as it is.

Where names meet in disjoint pairs, dealing the two strengths of a pair out anew turns its sign and
nothing else: names and groups cannot be told apart, and there is no floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.stats._draws import TIE
from evenhand.stats.pair_network import Codes, Floats, Network, observed, ratio, sparse

DISJOINT = "every name met one partner, so names and groups cannot be told apart"
LEAST, MOST = 99, 2 * 10**8
"""Fewest draws, and about how many links are added up over all draws."""
STEEP = np.logspace(-3, 2, 40)
"""Sizes of a preference, in mean ones, at which most templates agree; the best fitting is taken."""


@dataclass(frozen=True)
class Floors:
    """Mean and 95 % point of each number under the null, and the share of at least the observed."""

    mean: Floats
    p95: Floats
    p: Floats
    reason: str = ""


def name_floors(
    pairs: Network, metrics: Sequence[Callable[[Floats], float]], *, samples: int, seed: int
) -> Floors:
    """Floors of a number from the table of gamma, and of one from the table of eta.

    Args:
        pairs: comparisons between names of different groups.
        metrics: the two numbers; the fields of the result are in this order.
        samples, seed: how often strengths are dealt out (fewer times in very large networks).
    """
    network = _Fitted(pairs)
    parts = network.parts()
    sizes = np.bincount(parts)
    if sizes.max() < 3:
        unknown = np.full(len(metrics), np.nan)
        return Floors(unknown, unknown, unknown, DISJOINT)
    draws = max(min(samples, MOST // len(pairs.links.first)), min(LEAST, samples))
    rng = np.random.default_rng([seed, 11])
    members = [np.flatnonzero(parts == k) for k in np.flatnonzero(sizes > 1)]
    order = np.arange(pairs.n_terms)
    fitted = np.asarray([m(table) for m, table in zip(metrics, network.tables(order))])
    null = np.empty((draws, len(metrics)))
    for row in null:
        for at in members:
            order[at] = rng.permutation(at)
        row[:] = [m(table) for m, table in zip(metrics, network.tables(order))]
    reached = (null >= fitted - TIE * np.abs(fitted)).sum(axis=0)
    seen = observed(pairs)
    values = np.asarray([m(table) for m, table in zip(metrics, (seen.gamma, seen.eta))])
    null *= ratio(values, fitted)  # signs are fitted by a curve: as high as the printed number
    return Floors(null.mean(axis=0), np.quantile(null, 0.95, axis=0), (reached + 1) / (draws + 1))


class _Fitted:
    """Strengths and rests of a network, and the tables of gamma and eta that they make.

    The mean sign of a pair over templates is taken as erf(c / scale) of its mean c.
    """

    def __init__(self, pairs: Network) -> None:
        from scipy.special import erf

        self.links, self.size = pairs.links, (pairs.n_terms, pairs.n_attributes)
        links = self.links
        total, signs, self.n = links.sums
        self.to = links.onto(links.first, self.size[0]) - links.onto(links.second, self.size[0])
        self.count = np.asarray(abs(self.to) @ self.n)
        mean = total / self.n
        self.strength = self._least_squares(total)
        self.rest = mean - self._apart(np.arange(pairs.n_terms))
        scales = STEEP * max(float(np.abs(mean).mean()), TIE)
        misfit = [(self.n * (erf(mean / s) - signs / self.n) ** 2).sum() for s in scales]
        self.scale = float(scales[int(np.argmin(misfit))])

    def _least_squares(self, total: Floats) -> Floats:
        """Strengths [terms, attributes]; attributes whose pairs weigh alike are solved together."""
        links, (terms, columns) = self.links, self.size
        net = np.asarray(self.to @ total).reshape(self.size)
        out = np.zeros(self.size)
        kinds: dict[bytes, tuple[Floats, list[int]]] = {}
        for k in range(columns):
            at = links.attribute == k
            weight = np.zeros((terms, terms))
            weight[links.first[at], links.second[at]] = self.n[at]
            kinds.setdefault(weight.tobytes(), (weight + weight.T, []))[1].append(k)
        for weight, which in kinds.values():
            laplacian = np.diag(weight.sum(axis=1)) - weight
            out[:, which] = np.linalg.pinv(laplacian, hermitian=True) @ net[:, which]
        return out

    def _apart(self, order: Codes) -> Floats:
        """s(i) - s(j) of every link, with the strengths in this order."""
        dealt, links = self.strength[order], self.links
        return np.asarray(
            dealt[links.first, links.attribute] - dealt[links.second, links.attribute], np.float64
        )

    def tables(self, order: Codes) -> tuple[Floats, Floats]:
        """gamma and eta [terms, attributes] with the strengths in this order."""
        from scipy.special import erf

        c = self._apart(order) + self.rest
        means = (ratio(self.to @ (self.n * v), self.count) for v in (c, erf(c / self.scale)))
        gamma, eta = (mean.reshape(self.size) for mean in means)
        return gamma, eta

    def parts(self) -> Codes:
        """Which terms are linked with each other, directly or over others: a code per term."""
        from scipy.sparse.csgraph import connected_components

        shape = (self.size[0],) * 2
        graph = sparse(self.n, self.links.first, self.links.second, shape)
        return np.asarray(connected_components(graph, directed=False)[1], np.int64)
