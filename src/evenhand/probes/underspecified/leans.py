"""The lean of the question as asked, and how attributes differ in it.

For a pair of terms (x1, x2), both orders averaged,

    lean(x1, x2, a) = S(x1|a) - S(x2|a)

is how much more the model picks x1 when asked about a. A name that the model likes is picked for
every attribute, so twelve attributes of the same names are nearly one test. What an attribute does
beyond that is its contrast within the pair,

    contrast(x1, x2, a) = lean(x1, x2, a) - mean over attributes of lean(x1, x2, .)

relative to the average attribute of the set. The lean that all attributes share is a finding of its
own. Both generalise over names: pairs that share a name are no independent draws (`stats.mixed`).

UnQover's gamma subtracts the negated question instead. That cancels the shared lean only in a model
that heeds negation, and turns the direction round in one that overdoes it, so it is no verdict here
(Li et al. 2020 have it as theirs, and so has `as_published`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import TOO_FEW, Placebo
from evenhand.probes.shared.alone import simultaneous
from evenhand.probes.underspecified.cells import Cells
from evenhand.stats.estimate import ROUNDING, Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
SPLITS = 100
APART = 1_000_003
"""Between the seeds of the two groups' halves: disjoint pairs would be split alike otherwise."""
MANY_SPLITS = 20_000
"""Where no name is in two pairs a split costs next to nothing, and more give a steadier rate."""
ALARM = 0.05


def asked_lean(scores: Floats) -> Floats:
    """Lean of each cell to its first term when asked plainly, in [-1, 1]: both orders averaged.

    `scores` [cells, order, question, candidate] as in `metrics.unqover`.

    >>> gerald_jennifer = np.array([[[[.26, .73], [.35, .62]], [[.54, .45], [.12, .86]]]])
    >>> asked_lean(gerald_jennifer).round(4).tolist()
    [-0.19]
    """
    plain = scores[:, :, 0].mean(axis=1)
    return np.asarray(plain[:, 0] - plain[:, 1], np.float64)


class LeanSums:
    """Leans summed over templates as cells arrive, one sum per pair of terms and attribute.

    All cells of a pair must come in one block, so that a run that was never in memory as a whole
    adds in the same order, and ends with the same numbers, as one that was.
    """

    def __init__(self, names: Cells) -> None:
        self.names = names
        self.answered = 0
        """How many cells have a lean."""
        self._parts: list[tuple[Codes, Floats, Floats, Codes]] = []

    def add(self, cells: Cells, start: int = 0) -> None:
        """Add a block of cells; `start` is the number of its first cell."""
        lean = asked_lean(cells.scores)
        kept = np.isfinite(lean)
        self.answered += int(kept.sum())
        size = len(self.names.terms), len(self.names.attributes)
        key = (cells.first * size[0] + cells.second) * size[1] + cells.attribute
        known, at, code = np.unique(key[kept], return_index=True, return_inverse=True)
        number = start + np.flatnonzero(kept)[at]
        count = np.bincount(code).astype(np.float64)
        total = np.asarray(np.bincount(code, lean[kept]), np.float64)
        self._parts.append((known, total, count, number))

    def links(self) -> Links:
        """Mean lean of every pair about every attribute."""
        parts = [np.concatenate(part) for part in zip(*self._parts)]
        key, total, count, number = parts if parts else (np.empty(0, np.int64),) * 4
        pair, attribute = np.divmod(key, max(1, len(self.names.attributes)))
        first, second = np.divmod(pair, max(1, len(self.names.terms)))
        return Links(total / count, first, second, attribute, number)


@dataclass(frozen=True)
class Links:
    """Mean leans to `first` over `second` about `attribute`; `cell` is the number of one cell."""

    lean: Floats
    first: Codes
    second: Codes
    attribute: Codes
    cell: Codes


@dataclass(frozen=True)
class PairTable:
    """Leans by pair and attribute [pairs, attributes] with the two terms and a cell of each.

    Only pairs that were asked about every attribute are kept, so that contrasts compare the same
    names.
    """

    leans: Floats
    one: Codes
    two: Codes
    cells: Codes

    @property
    def contrasts(self) -> Floats:
        """Each pair's leans without the lean that its attributes share."""
        return np.asarray(self.leans - self.leans.mean(axis=1, keepdims=True), np.float64)

    @property
    def shared(self) -> Floats:
        """The lean that a pair's attributes share."""
        return np.asarray(self.leans.mean(axis=1), np.float64)

    def design(self) -> Design:
        """Names of either side as crossed samples."""
        return Design([Factor(self.one), Factor(self.two)], held=True)


def group_pairs(links: Links, groups: Codes, n_attributes: int) -> PairTable:
    """The links between the first two groups as a table; positive leans to group 0."""
    ends = groups[links.first], groups[links.second]
    kept = (np.minimum(*ends) == 0) & (np.maximum(*ends) == 1)
    turned = ends[0][kept] == 1
    one = np.where(turned, links.second[kept], links.first[kept])
    two = np.where(turned, links.first[kept], links.second[kept])
    signed = np.where(turned, -links.lean[kept], links.lean[kept])
    return pair_table(
        Links(signed, one, two, links.attribute[kept], links.cell[kept]), n_attributes
    )


def term_pairs(links: Links, term: int, n_attributes: int) -> PairTable:
    """The links of one term with its partners; positive leans to the term."""
    kept = (links.first == term) | (links.second == term)
    turned = links.second[kept] == term
    partner = np.where(turned, links.first[kept], links.second[kept])
    signed = np.where(turned, -links.lean[kept], links.lean[kept])
    ends = Links(signed, partner, partner, links.attribute[kept], links.cell[kept])
    return pair_table(ends, n_attributes)


def pair_table(links: Links, columns: int) -> PairTable:
    """Links as a table; pairs that lack an attribute are left out."""
    width = int(max(links.first.max(initial=0), links.second.max(initial=0))) + 1
    known, pair = np.unique(links.first * width + links.second, return_inverse=True)
    leans = np.full((len(known), columns), np.nan)
    cells = np.zeros((len(known), columns), np.int64)
    leans[pair, links.attribute], cells[pair, links.attribute] = links.lean, links.cell
    whole = np.isfinite(leans).all(axis=1)
    ends = np.divmod(known[whole], width)
    return PairTable(leans[whole], ends[0], ends[1], cells[whole])


@dataclass(frozen=True)
class Leaning:
    """One estimated lean: whose, about what, and a typical cell behind it.

    `attribute` is None for the lean that all attributes share, `term` None where groups lean.
    `agree` of `pairs` pairs go the way of the estimate; `cell` is the median one of these.
    `alone` is the lean at the attribute's own question.
    """

    term: str | None
    attribute: str | None
    found: Estimate
    q: float
    agree: int
    pairs: int
    cell: int
    alone: Alone | None = None


@dataclass(frozen=True)
class Alone:
    """The lean at one question, not compared with others, over names.

    Attributes:
        found: the estimate; its interval holds for all questions together.
        leads: in how many questions the first group (or the term) leads, by the mean lean alone.
        questions: how many were asked.
    """

    found: Estimate
    leads: int
    questions: int


def leanings(names: Cells, links: Links, rate: float = ALARM) -> list[Leaning]:
    """Every lean that the links speak of: of the first group, or of each term."""
    columns = len(names.attributes)
    tables = _tables(names, links)
    family = len(tables) * (columns + 1)
    rows: list[Leaning] = []
    for term, table in tables:
        alone = _alone(table, len(tables) * columns, rate)
        for k, found in enumerate(contrasts(table, family, rate)):
            row = _typical(term, names.attributes[k], found, table.contrasts[:, k], table, k)
            rows.append(replace(row, alone=alone[k]))
        shared = shared_lean(table, family, rate, attributes=term is not None)
        rows.append(_typical(term, None, shared, table.shared, table, 0))
    q = benjamini_hochberg([row.found.p for row in rows])
    return [replace(row, q=float(v)) for row, v in zip(rows, q)]


def leans_alone(
    names: Cells, links: Links, rate: float = ALARM
) -> dict[tuple[str | None, str | None], Alone]:
    """Return the lean at every question by itself, by term and attribute.

    The term is None where groups lean, the attribute None for a term's lean over all attributes.
    """
    tables = _tables(names, links)
    leans: dict[tuple[str | None, str | None], Alone] = {}
    for term, table in tables:
        alone = _alone(table, len(tables) * len(names.attributes), rate)
        leans |= {(term, name): row for name, row in zip(names.attributes, alone)}
        if term is not None:
            shared = shared_lean(table, 1, rate, attributes=True)
            leans[term, None] = Alone(simultaneous(shared, len(tables), rate), 0, 0)
    return leans


def _tables(names: Cells, links: Links) -> Sequence[tuple[str | None, PairTable]]:
    """Return the leans between the first two groups, or those of each term."""
    columns = len(names.attributes)
    if names.group_of_term is not None:
        return [(None, group_pairs(links, names.group_of_term, columns))]
    return [(t, term_pairs(links, k, columns)) for k, t in enumerate(names.terms)]


def _alone(table: PairTable, tests: int, rate: float) -> list[Alone]:
    """Return the lean at each question, with intervals that hold for all `tests` together."""
    columns = table.leans.shape[1]
    if len(table.leans) < 2:
        return [Alone(Estimate(float("nan"), reason=_lacking(table)), 0, columns)] * columns
    leans = table.design().estimates(table.leans, rate=rate)
    leads = sum(lean.value > 0 for lean in leans)
    return [Alone(simultaneous(lean, tests, rate), leads, columns) for lean in leans]


def _typical(
    term: str | None,
    attribute: str | None,
    found: Estimate,
    values: Floats,
    table: PairTable,
    column: int,
) -> Leaning:
    """The lean with the median of the pairs that go its way."""
    same = np.flatnonzero(values * found.value > 0)
    place = same[np.argsort(values[same], kind="stable")[(len(same) - 1) // 2]] if len(same) else -1
    cell = int(table.cells[place, column]) if place >= 0 else -1
    return Leaning(term, attribute, found, float("nan"), len(same), len(values), cell)


def contrasts(table: PairTable, family: int, rate: float = ALARM) -> list[Estimate]:
    """One estimate per attribute: its contrast, over names."""
    if len(table.leans) < 2 or table.leans.shape[1] < 2:
        return [Estimate(float("nan"), reason=_lacking(table))] * table.leans.shape[1]
    return table.design().estimates(table.contrasts, family=family, rate=rate)


def shared_lean(
    table: PairTable, family: int, rate: float = ALARM, *, attributes: bool = False
) -> Estimate:
    """The lean that all attributes share, over names; over attributes too where these are drawn."""
    if len(table.leans) < 2:
        return Estimate(float("nan"), reason=_lacking(table))
    if attributes and table.leans.shape[1] > 1:
        pair, attribute = np.indices(table.leans.shape).reshape(2, -1)
        design = Design([Factor(table.one[pair]), Factor(attribute)])
        return design.estimate(table.leans.ravel(), family=family, rate=rate)
    return table.design().estimate(table.shared, family=family, rate=rate)


def _lacking(table: PairTable) -> str:
    if len(table.leans) < 2:
        return "fewer than two pairs were asked about every attribute"
    return "a single attribute has no others to be compared with"


def placebos(names: Cells, links: Links, seed: int) -> tuple[Placebo, ...]:
    """Random halves of either group's names; without groups, of the partners of a term."""
    if names.group_of_term is None:
        columns = len(names.attributes)
        terms = np.random.default_rng([seed, 5]).permutation(len(names.terms))[:SPLITS].tolist()
        each = -(-SPLITS // max(1, len(terms)))
        found = [halves(term_pairs(links, t, columns), "", seed, each) for t in terms]
        counted = ((f.tests, f.alarms) for f in found)
        return (Placebo.of("random halves of the partners of a term", counted),)
    table = group_pairs(links, names.group_of_term, len(names.attributes))
    other = PairTable(-table.leans, table.two, table.one, table.cells)
    sides = zip(names.groups[:2], (table, other))
    return tuple(
        halves(t, f"random halves of the {group} names", seed + k * APART)
        for k, (group, t) in enumerate(sides)
    )


def halves(table: PairTable, what: str, seed: int, splits: int = SPLITS) -> Placebo:
    """Random halves of one group's names against each other: there is nothing to find.

    The names of group 0 are split; pairs of the first half are compared with pairs of the second,
    attribute by attribute, by the very test that the findings rest on.
    """
    rng = np.random.default_rng([seed, 7])
    names = np.unique(table.one)
    if len(names) < 4 or table.leans.shape[1] < 2:
        return Placebo(what, 0, 0, TOO_FEW)
    if len(names) == len(table.one) == len(np.unique(table.two)):
        return Placebo(what, *_disjoint_halves(table.contrasts, rng, MANY_SPLITS))
    tests = alarms = 0
    values = table.contrasts
    for _ in range(splits):
        chosen = rng.permutation(names)[: len(names) // 2]
        side = np.isin(table.one, chosen).astype(np.int64)
        fixed = np.eye(2)[side]
        design = Design([Factor(table.one), Factor(table.two)], fixed, [1.0, -1.0])
        p = [e.p for e in design.estimates(values)]
        tests += len(p)
        alarms += sum(value <= ALARM for value in p)
    return Placebo(what, tests, alarms)


def _disjoint_halves(values: Floats, rng: np.random.Generator, splits: int) -> tuple[int, int]:
    """Tests and alarms of random halves of independent pairs: the pooled two-sample t at once.

    t = (mean of one half - mean of the other) / sqrt(s^2 (1/h + 1/(n - h))), n - 2 degrees.
    """
    from scipy.special import stdtrit

    n, half = len(values), len(values) // 2
    values = values - values.mean(axis=0)
    chosen = rng.permuted(np.tile(np.arange(n) < half, (splits, 1)), axis=1).astype(np.float64)
    gap = chosen @ values * (1 / half + 1 / (n - half))
    between = gap**2 * (half * (n - half) / n)
    within = np.maximum((values**2).sum(axis=0) - between, 0.0)
    alarm = between * (n - 2) > within * stdtrit(n - 2, 1 - ALARM / 2) ** 2
    return gap.size, int((alarm & (between > ROUNDING)).sum())
