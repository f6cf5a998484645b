"""How sure are preferences between pairs of terms: intervals, noise floors and tests.

A pair design is a network: each cell joins two terms, and every term meets many partners. So cells
are not independent draws. Intervals weigh terms and templates as crossed samples; the noise floor
and the tests flip the direction of whole pairs (`name_floors` has the one that knows groups).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.stats.noise import NoiseFloor, noise_floor
from evenhand.stats.permutation import paired_sign_flip

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]

CHUNK = 16
COLUMNS = 4_000
FLIPPED_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Leans:
    """Mean value (gamma), mean sign (eta) and number of comparisons of each node; NaN: none."""

    gamma: Floats
    eta: Floats
    n: npt.NDArray[np.int64]


def leans(
    values: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    layer: npt.ArrayLike | None = None,
    *,
    n_nodes: int,
    n_layers: int = 1,
) -> Leans:
    """Means of comparisons by node, [nodes, layers], or [nodes] over all layers.

    A comparison counts +value for its first node and -value for its second, once each; NaN is left
    out.

    >>> leans([0.5, 0.25], [0, 0], [1, 2], n_nodes=3).gamma.tolist()
    [0.375, -0.5, -0.25]
    """
    c = np.asarray(values, np.float64)
    used = ~np.isnan(c)
    ends = [np.asarray(first, np.int64), np.asarray(second, np.int64)]
    shape: tuple[int, ...] = (n_nodes,)
    if layer is not None:
        shape = (n_nodes, n_layers)
        ends = [end * n_layers + np.asarray(layer, np.int64) for end in ends]
    if not used.all():
        c, ends = c[used], [end[used] for end in ends]
    size = int(np.prod(shape))
    n = sum((np.bincount(end, minlength=size) for end in ends), np.zeros(size, np.int64))
    means = []
    for weights in (c, np.sign(c)):
        plus, minus = (np.bincount(end, weights, minlength=size) for end in ends)
        means.append(np.divide(plus - minus, n, out=np.full(size, np.nan), where=n > 0))
    return Leans(means[0].reshape(shape), means[1].reshape(shape), n.reshape(shape))


class Network(Protocol):
    """What intervals and tests need to know of a pair design, held whole or summed on the way."""

    @property
    def n_terms(self) -> int: ...

    @property
    def n_attributes(self) -> int: ...

    @property
    def links(self) -> Links: ...

    def contexts(self) -> tuple[int, Codes]: ...

    def preferences(self, *, by_attribute: bool) -> Leans: ...

    def group_preferences(self, groups: Codes, n_groups: int) -> Leans: ...


@dataclass(frozen=True)
class Pairs:
    """Complete cells of a pair design, one entry per cell; codes start at 0.

    `comparative` is C of the first term over the second; `errors` [cells, 3] holds the positional
    error, the negation error and the mean score. `stratum` (one code per term) keeps the groups
    apart when terms are weighed.
    """

    comparative: Floats
    first: Codes
    second: Codes
    attribute: Codes
    template: Codes
    errors: Floats
    n_terms: int
    n_attributes: int
    n_templates: int
    stratum: Codes

    def contexts(self) -> tuple[int, Codes]:
        """Different (pair, template) combinations: in all, and for each term."""
        key = (self.first * self.n_terms + self.second) * self.n_templates + self.template
        first, second = np.divmod(np.unique(key) // self.n_templates, self.n_terms)
        ends = np.concatenate([first, second])
        return len(first), np.bincount(ends, minlength=self.n_terms).astype(np.int64)

    def preferences(self, *, by_attribute: bool) -> Leans:
        """gamma and eta of every term and attribute, or of every term."""
        return leans(
            self.comparative,
            self.first,
            self.second,
            self.attribute if by_attribute else None,
            n_nodes=self.n_terms,
            n_layers=self.n_attributes,
        )

    def group_preferences(self, groups: Codes, n_groups: int) -> Leans:
        """gamma and eta of every group and attribute, over cells between different groups."""
        ends = groups[self.first], groups[self.second]
        return leans(
            np.where(ends[0] != ends[1], self.comparative, np.nan),
            *ends,
            self.attribute,
            n_nodes=n_groups,
            n_layers=self.n_attributes,
        )

    @cached_property
    def links(self) -> Links:
        """The cells summed over templates: one link per pair of terms and attribute."""
        key = (self.first * self.n_terms + self.second) * self.n_attributes + self.attribute
        known, code = np.unique(key, return_inverse=True)
        pair, attribute = np.divmod(known, self.n_attributes)
        first, second = np.divmod(pair, self.n_terms)
        sign = np.sign(self.comparative)
        ones = np.ones(len(code))
        by_template = tuple(
            sparse(weights, code, self.template, (len(known), self.n_templates))
            for weights in (self.comparative, sign, ones)
        )
        return Links(first, second, attribute, by_template, self.n_terms, self.n_attributes)


@dataclass(frozen=True)
class Links:
    """One link per (first, second, attribute); `by_template` holds C, sgn C and counts."""

    first: Codes
    second: Codes
    attribute: Codes
    by_template: tuple[Any, ...]
    n_terms: int
    n_attributes: int

    @cached_property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        """C, sgn C and counts of each link, summed over templates."""
        c, sign, n = (np.asarray(m.sum(axis=1)).ravel() for m in self.by_template)
        return c, sign, n

    def onto(self, term: Codes, n_rows: int, keep: npt.NDArray[np.bool_] | None = None) -> Any:
        """Sparse [rows x attributes, links] that adds links to the row of `term[link]`."""
        links = np.arange(len(term))
        ones = np.ones(len(term)) if keep is None else keep.astype(np.float64)
        row = term * self.n_attributes + self.attribute
        return sparse(ones, row, links, (n_rows * self.n_attributes, len(term)))


def sparse(values: Floats, rows: Codes, columns: Codes, shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_matrix

    return coo_matrix((values, (rows, columns)), shape=shape).tocsr()


@dataclass(frozen=True, slots=True)
class Draws:
    """Weighed replicates, last axis = draw: what the numbers would be for other samples."""

    gamma: Floats  # [terms, attributes, draws]
    gamma_term: Floats  # [terms, draws]
    gamma_group: Floats  # [groups, attributes, draws]
    mu: Floats
    eta: Floats
    errors: Floats  # [3, draws]


def sample_weights(rng: np.random.Generator, stratum: Codes, draws: int) -> Floats:
    """Random weights [units, draws] with mean 1 in each stratum (Rubin 1981, gamma weights).

    The shape (n - 2) / n makes the variance of a weighted mean of n units equal to s^2 / n, so
    that few templates do not give intervals that are too short. No unit is ever lost.
    """
    weights = np.empty((len(stratum), draws))
    for code in np.unique(stratum):
        at = np.flatnonzero(stratum == code)
        shape = max((len(at) - 2) / len(at), 0.25)
        drawn = rng.gamma(shape, size=(len(at), draws)) + 1e-12
        weights[at] = drawn / drawn.mean(axis=0)
    return weights


def observed(pairs: Network) -> Leans:
    """gamma and eta of every term and attribute, as printed."""
    return pairs.preferences(by_attribute=True)


def fill_draws(
    out: Draws,
    seen: Leans,
    part: slice,
    w: Floats,
    total: Floats,
    signs: Floats,
    count: Floats,
) -> None:
    gamma, eta = ratio(total, count), ratio(signs, count)
    out.gamma[:, :, part] = gamma
    out.gamma_term[:, part] = ratio(total.sum(axis=1), count.sum(axis=1))
    met: npt.NDArray[np.bool_] = seen.n > 0
    size = np.where(met, np.abs(seen.gamma), -1.0)
    at = np.arange(len(size)), size.argmax(axis=1)
    peak = np.sign(seen.gamma[at])[:, None] * gamma[at]
    way = np.where(met, np.sign(seen.eta), 0.0)[:, :, None]
    mean = np.where(met[:, :, None], way * eta, 0.0).sum(axis=1)
    mean /= np.maximum(met.sum(axis=1), 1)[:, None]
    weight = w * (met.sum(axis=1) > 0)[:, None]
    out.mu[part] = np.where(weight > 0, weight * peak, 0.0).sum(axis=0) / weight.sum(axis=0)
    out.eta[part] = (weight * mean).sum(axis=0) / weight.sum(axis=0)


def ratio(total: Floats, count: Floats) -> Floats:
    out = np.full(total.shape, np.nan)
    np.divide(total, count, out=out, where=count > 0)
    return out


def interval(
    value: Floats | float, draws: Floats, contexts: npt.ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Low and high of a printed number: the spread of its replicates, centred on the number.

    Args:
        value: the number, or an array of them.
        draws: its replicates along the last axis.
        contexts: how many different partners and templates it rests on; with fewer than two the
            interval is NaN, since one says nothing about others.
    """
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=-1)
    centre = draws.mean(axis=-1)
    known = np.asarray(contexts) > 1
    return (
        np.where(known, value + np.minimum(low - centre, 0.0), np.nan),
        np.where(known, value + np.maximum(high - centre, 0.0), np.nan),
    )


def noise_floors(
    pairs: Network, metrics: Sequence[Callable[[Floats], float]], *, samples: int, seed: int
) -> NoiseFloor:
    """What two numbers read when neither end of any pair is preferred, with the same noise.

    Each pair has its direction flipped at random, all templates and attributes together, so the
    size of the comparisons and the network stay as they are and only a common direction is lost.
    This speaks of these terms: where terms stand for groups, see `name_floors`.

    Args:
        metrics: a number from the table of gamma, and one from the table of eta; the fields of the
            result are pairs in this order.
        samples, seed: random flips.
    """
    links = pairs.links
    size = (pairs.n_terms, pairs.n_attributes)
    to = links.onto(links.first, size[0]) - links.onto(links.second, size[0])
    count = abs(to) @ links.sums[2]

    def reduce(values: Floats) -> Floats:
        totals = (to @ values[:, :, k].T for k in range(2))
        tables = [ratio(t, np.repeat(count[:, None], t.shape[1], axis=1)).T for t in totals]
        columns = [
            [metric(row.reshape(size)) for row in table]
            for metric, table in zip(metrics, tables, strict=True)
        ]
        return np.asarray(columns, np.float64).T

    values = np.stack(links.sums[:2], axis=1)
    pair = links.first * np.int64(pairs.n_terms) + links.second
    return noise_floor(
        values, reduce, codes=pair, samples=samples, seed=seed, max_bytes=FLIPPED_BYTES
    )


def flip_p(
    links: Links,
    own: Codes,
    partner: Codes,
    n_rows: int,
    *,
    by_attribute: bool,
    samples: int,
    seed: int,
) -> Floats:
    """Two-sided p of gamma of each row, by flipping the sign of whole partners.

    Args:
        own: row (term or group) of each link's first end, then of its second end, shape [2, links];
            -1 leaves the link out.
        partner: partner of each end, shape [2, links].
        by_attribute: one p per (row, attribute), else one per row over all attributes.
        samples, seed: random sign patterns, when there are too many to list.
    """
    width = links.n_attributes if by_attribute else 1
    slots = _slots(own, partner, n_rows)
    table = np.zeros((int(slots.max()) + 1, n_rows * width))
    met = np.zeros(n_rows * width, np.bool_)
    for row, mate, sign in zip(own, partner, (1.0, -1.0), strict=True):
        used = row >= 0
        place = row[used] * width + (links.attribute[used] if by_attribute else 0)
        np.add.at(table, (slots[row[used], mate[used]], place), sign * links.sums[0][used])
        met[place] = True
    p = np.full(n_rows * width, np.nan)
    columns = np.flatnonzero(met)
    for start in range(0, len(columns), COLUMNS):
        part = columns[start : start + COLUMNS]
        p[part] = paired_sign_flip(table[:, part], samples=samples, seed=seed).p_two_sided
    return p


def _slots(own: Codes, partner: Codes, n_rows: int) -> Codes:
    """[rows, partners]: the distinct partners of each row, numbered from 0.

    So a table by row and slot needs few rows.
    """
    met = np.zeros((n_rows, int(partner.max()) + 1), np.bool_)
    for row, mate in zip(own, partner, strict=True):
        met[row[row >= 0], mate[row >= 0]] = True
    return np.asarray(met.cumsum(axis=1) - 1, np.int64)
