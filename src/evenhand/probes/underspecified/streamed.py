"""Underspecified cells summed as they arrive, so that memory does not grow with their number.

    sums = CellSums(names, Sampling(resamples=500, seed=0))
    for block in blocks:              # Cells of whole pairs, in any order
        sums.add(block)
    result = sums.measure()
    result = measure_cells(cells)     # the same of cells in one block

Held: weighed sums [terms, attributes, draws] and one sum per link (pair of terms and attribute).
Weights are drawn as by Owen (2007), terms and templates as crossed samples: a cell weighs
w(template) * w(partner) in gamma(x, a), and w(template) * w(first) * w(second) in the means over
cells and in gamma of a group. In mu and eta each term weighs w(term); which attribute is the
extreme one, and its sign, stay as observed, since replicates of a maximum of absolute values would
add their own noise to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.metrics import unqover
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.numbers import (
    LISTED,
    METRICS,
    NUMBERS,
    Coverage,
    Incomplete,
    PreferencesResult,
    Sampling,
    coverage,
    inferred,
    nothing,
    pairs_of,
)
from evenhand.stats import pair_network as inference

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
DRAWS_AT_ONCE = 64


@dataclass(frozen=True)
class SummedLinks(inference.Links):
    """Links whose templates are summed already."""

    totals: tuple[Floats, Floats, Floats] = (np.empty(0), np.empty(0), np.empty(0))

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        return self.totals


@dataclass(frozen=True)
class SummedPairs:
    """A pair design of which only the links are left (see `pairs.Network`)."""

    links: inference.Links
    n_terms: int
    n_attributes: int
    met: Codes
    """Different (pair, template) combinations of each term."""

    @classmethod
    def of(cls, pairs: inference.Pairs) -> SummedPairs:
        """What is left of pairs that are held."""
        return cls(pairs.links, pairs.n_terms, pairs.n_attributes, pairs.contexts()[1])

    def contexts(self) -> tuple[int, Codes]:
        return int(self.met.sum()) // 2, self.met

    def preferences(self, *, by_attribute: bool) -> unqover.Preferences:
        attribute = self.links.attribute if by_attribute else np.zeros_like(self.links.attribute)
        width = self.n_attributes if by_attribute else 1
        found = self._joined(self.links.first, self.links.second, attribute, self.n_terms, width)
        if by_attribute:
            return found
        return unqover.Preferences(found.gamma[:, 0], found.eta[:, 0], found.n[:, 0])

    def group_preferences(self, groups: Codes, n_groups: int) -> unqover.Preferences:
        ends = groups[self.links.first], groups[self.links.second]
        across = ends[0] != ends[1]
        return self._joined(*ends, self.links.attribute, n_groups, self.n_attributes, keep=across)

    def regrouped(
        self,
        first: Codes,
        second: Codes,
        attribute: Codes,
        size: tuple[int, int],
        *,
        across: bool,
    ) -> unqover.Preferences:
        """gamma and eta with the ends and attributes of links joined to larger classes."""
        keep = first != second if across else np.ones(len(first), np.bool_)
        return self._joined(first, second, attribute, *size, keep=keep)

    def _joined(
        self,
        first: Codes,
        second: Codes,
        attribute: Codes,
        rows: int,
        width: int,
        keep: npt.NDArray[np.bool_] | None = None,
    ) -> unqover.Preferences:
        sums = [part if keep is None else part * keep for part in self.links.sums]
        ends = [end * width + attribute for end in (first, second)]
        size = rows * width
        plus = [
            [np.asarray(np.bincount(end, part, minlength=size), np.float64) for part in sums]
            for end in ends
        ]
        n = np.round(plus[0][2] + plus[1][2]).astype(np.int64)
        gamma, eta = (
            inference.ratio(plus[0][k] - plus[1][k], n.astype(np.float64)) for k in range(2)
        )
        shape = (rows, width)
        return unqover.Preferences(gamma.reshape(shape), eta.reshape(shape), n.reshape(shape))


class CellSums:
    """Running sums over blocks of cells.

    Args:
        names: terms, attributes, templates and groups, as `Cells` without cells.
        how: draws of intervals and tests.
    """

    def __init__(self, names: Cells, how: Sampling | None = None) -> None:
        self.names = names
        self.how = how or Sampling()
        resamples = self.how.resamples
        self.size = len(names.terms), len(names.attributes)
        groups = names.group_of_term
        stratum = np.zeros(self.size[0], np.int64) if groups is None else groups
        rng = np.random.default_rng(self.how.seed)
        self._terms = inference.sample_weights(rng, stratum, resamples)
        blank = np.zeros(len(names.templates), np.int64)
        self._templates = inference.sample_weights(rng, blank, resamples)
        rows = self.size[0] * self.size[1]
        self._weighed = [np.zeros((rows, resamples)) for _ in range(3)]
        self._n_groups = 0 if groups is None else int(groups.max()) + 1
        self._by_group = [np.zeros((self._n_groups * self.size[1], resamples)) for _ in range(2)]
        self._errors = np.zeros((4, resamples))
        self._means = np.zeros(3)
        self._met = np.zeros(self.size[0], np.int64)
        self._flips = np.zeros(4, np.int64)
        self._links: list[tuple[npt.NDArray[Any], ...]] = []
        self._found = self._complete = self._rows = 0
        self._missing: list[Incomplete] = []

    def add(self, block: Cells) -> None:
        """Add cells; all cells of a pair of terms must come in the same block."""
        kept = block.kept()
        seen = coverage(block, kept)
        self._found += len(kept)
        self._complete += seen.n_complete
        self._rows += block.n_rows
        self._missing += seen.which[: LISTED - len(self._missing)]
        if not kept.any():
            return
        pairs = pairs_of(block, kept)
        self._means += pairs.errors.sum(axis=0)
        counted = unqover.flips(block.scores[kept])
        self._flips += [getattr(counted, name) for name in counted.__slots__]
        self._met += pairs.contexts()[1]
        links = pairs.links
        key = (links.first * self.size[0] + links.second) * self.size[1] + links.attribute
        c, sign, n = links.sums
        self._links.append((key, c, sign.astype(np.float32), n.astype(np.int32)))  # whole numbers
        self._weigh(links)
        self._weigh_errors(pairs)

    def _weigh(self, links: inference.Links) -> None:
        """Add the links to the weighed sums of both ends and of their groups."""
        groups = self.names.group_of_term
        ends = [_Onto(end * self.size[1] + links.attribute) for end in (links.first, links.second)]
        sides: list[_Onto] = []
        if groups is not None:
            across = (groups[links.first] != groups[links.second]).astype(np.float64)
            sides = [
                _Onto(groups[end] * self.size[1] + links.attribute, across)
                for end in (links.first, links.second)
            ]
        for start in range(0, self._templates.shape[1], DRAWS_AT_ONCE):
            part = slice(start, start + DRAWS_AT_ONCE)
            w = self._terms[:, part]
            c, sign, n = (matrix @ self._templates[:, part] for matrix in links.by_template)
            near, far = w[links.second], w[links.first]
            for target, value, way in zip(self._weighed, (c, sign, n), (-1, -1, 1), strict=True):
                ends[0].add(target, part, value * near)
                ends[1].add(target, part, way * value * far)
            if sides:
                both = near * far
                for target, value, way in zip(self._by_group, (c, n), (-1, 1), strict=True):
                    sides[0].add(target, part, value * both)
                    sides[1].add(target, part, way * value * both)

    def _weigh_errors(self, pairs: inference.Pairs) -> None:
        key = (pairs.first * pairs.n_terms + pairs.second) * pairs.n_templates + pairs.template
        known, code = np.unique(key, return_inverse=True)
        pair, template = np.divmod(known, pairs.n_templates)
        first, second = np.divmod(pair, pairs.n_terms)
        columns = (*pairs.errors.T, np.ones(len(code)))
        sums = np.stack([np.bincount(code, column) for column in columns])
        w = self._terms[first] * self._terms[second] * self._templates[template]
        self._errors += np.einsum("kg,gd->kd", sums, w)

    def pairs(self) -> SummedPairs:
        """The links so far, in the order of their terms and attributes."""
        columns = self._joined()
        pair, attribute = np.divmod(columns[0], self.size[1])
        first, second = (code.astype(np.int32) for code in np.divmod(pair, self.size[0]))
        c, sign, n = (column.astype(np.float64, copy=False) for column in columns[1:])
        links = SummedLinks(first, second, attribute.astype(np.int32), (), *self.size, (c, sign, n))
        return SummedPairs(links, *self.size, self._met)

    def _joined(self) -> tuple[npt.NDArray[Any], ...]:
        """The links as four columns in order of their key; the parts they came in are let go."""
        parts = [list(part) for part in zip(*self._links, strict=True)]
        self._links = []
        key = np.concatenate(parts.pop(0)) if parts else np.empty(0, np.int64)
        order = np.argsort(key, kind="stable")
        columns = [key[order]]
        while parts:
            columns.append(np.concatenate(parts.pop(0))[order])
        columns += [np.empty(0)] * (4 - len(columns))
        self._links = [tuple(columns)]
        return self._links[0]

    def measure(self) -> PreferencesResult:
        """All numbers with intervals, noise floors and tests."""
        if not self._complete:
            return nothing(self._coverage(), self.how)
        pairs = self.pairs()
        seen = pairs.preferences(by_attribute=True)
        means = (self._means / self._complete).tolist()
        values = [*means, unqover.intensity(seen.gamma), unqover.consistency(seen.eta)]
        return inferred(
            dict(zip(NUMBERS, values, strict=True)),
            self.names,
            pairs,
            self.draws(seen),
            self.how,
            flips=unqover.Flips(*self._flips.tolist()),
            coverage=self._coverage(),
        )

    def draws(self, seen: unqover.Preferences) -> inference.Draws:
        """The replicates; the weighed sums make room for them on the way."""
        draws = self._errors.shape[1]
        total, signs, count = self._weighed
        gamma = total.reshape(*self.size, draws)  # taken over in place, chunk by chunk
        c, n = self._by_group
        group = inference.ratio(c, n).reshape(self._n_groups, self.size[1], draws)
        out = inference.Draws(
            gamma,
            np.empty((self.size[0], draws)),
            group,
            np.empty(draws),
            np.empty(draws),
            self._errors[:3] / self._errors[3],
        )
        for start in range(0, draws, inference.CHUNK):
            part = slice(start, min(start + inference.CHUNK, draws))
            cut = (a[:, part].reshape(*self.size, -1).copy() for a in (total, signs, count))
            inference.fill_draws(out, seen, part, self._terms[:, part], *cut)
        self._weighed = []
        return out

    def _coverage(self) -> Coverage:
        return Coverage(
            self._rows,
            self._found,
            self._complete,
            self._found - self._complete,
            self._missing,
            len(self._missing),
            *self.size,
            len(self.names.templates),
        )


def measure_cells(cells: Cells, how: Sampling | None = None) -> PreferencesResult:
    """All numbers of cells in memory, as one block."""
    sums = CellSums(cells, how)
    sums.add(cells)
    return sums.measure()


def mu_error(cells: Cells, *, resamples: int = 200, seed: int = 0) -> float:
    """How far mu may be off: its standard error and its upward bias, squared and added; or NaN.

    The standard error is a quarter of the width of mu's 95 % interval, near enough. The bias is
    what mu loses when its noise floor is taken off in squares: terms that met one partner each
    have a narrow interval around a mu that is all noise. No test is run, so a sampled design can
    ask again and again.
    """
    if not cells.kept().any():
        return float("nan")
    sums = CellSums(cells, Sampling(resamples, seed=seed))
    sums.add(cells)
    pairs = sums.pairs()
    seen = inference.observed(pairs)
    mu = unqover.intensity(seen.gamma)
    low, high = inference.interval(mu, sums.draws(seen).mu, pairs.contexts()[0])
    floors = inference.noise_floors(pairs, METRICS, samples=resamples, seed=seed)
    floor = float(np.asarray(floors.mean)[0])
    bias = mu - float(np.sqrt(max(mu**2 - floor**2, 0.0)))
    return float(np.hypot((high - low) / 3.92, bias))


class _Onto:
    """Adds rows of a block to the rows of a larger table that they belong to."""

    def __init__(self, rows: Codes, weights: Floats | None = None) -> None:
        self.rows, code = np.unique(rows, return_inverse=True)
        ones = np.ones(len(rows)) if weights is None else weights
        columns = np.arange(len(rows))
        self.matrix = inference.sparse(ones, code, columns, (len(self.rows), len(rows)))

    def add(self, target: Floats, part: slice, values: Floats) -> None:
        target[self.rows, part] += self.matrix @ values
