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

Questions may also be declined more often for some names than for others. Both groups' names stand
in every question, so groups are compared by which of them is named first, in the same pairs of
names and the same questions:

    gap(pair) = share declined, group a's name first - share declined, group b's name first

A single term is compared with what its partners get beside others:

    gap(t, p) = share declined of (t, p) - mean over others u of the share declined of (u, p)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.compare.rows import RATE, Row, Test, judge
from evenhand.compare.sums import DenseSums, Sums
from evenhand.probes.base import TOO_FEW, Placebo
from evenhand.probes.shared.alone import simultaneous
from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.design import Cells, asked_lean
from evenhand.probes.underspecified.tables import cells_of, known_mean
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import NAN, ROUNDING, Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.pair_network import Codes, Floats

Asked = tuple[str | None, str | None]
"""A term, None where groups lean, and an attribute, None for all of them."""
SPLITS = 100
APART = 1_000_003
"""Between the seeds of the two groups' halves: disjoint pairs would be split alike otherwise."""
MANY_SPLITS = 20_000
"""Where no name is in two pairs a split costs next to nothing, and more give a steadier rate."""
PLACE = f"underspecified/{REFUSED}"


class LeanSums:
    """Leans summed over templates as cells arrive, one sum per pair of terms and attribute.

    All cells of a pair must come in one block, so that a run that was never in memory as a whole
    adds in the same order, and ends with the same numbers, as one that was.
    """

    def __init__(self, names: Cells) -> None:
        self.names = names
        self.answered = 0
        """How many cells have a lean."""
        self._sums = Sums(3)  # leans, cells, the number of the first cell

    def add(self, cells: Cells, start: int = 0) -> None:
        """Add a block of cells; `start` is the number of its first cell."""
        lean = asked_lean(cells.scores)
        kept = np.isfinite(lean)
        self.answered += int(kept.sum())
        size = len(self.names.terms), len(self.names.attributes)
        key = (cells.first * size[0] + cells.second) * size[1] + cells.attribute
        first = np.zeros(len(lean))
        at = np.flatnonzero(kept)[np.unique(key[kept], return_index=True)[1]]
        first[at] = start + at
        self._sums.add(key[kept], np.stack([lean, np.ones(len(lean)), first], axis=1)[kept])

    def links(self) -> Links:
        """Mean lean of every pair about every attribute."""
        key, (total, count, number) = (part.T for part in self._sums.joined())
        pair, attribute = np.divmod(key, max(1, len(self.names.attributes)))
        first, second = np.divmod(pair, max(1, len(self.names.terms)))
        return Links(total / count, first, second, attribute, number.astype(np.int64))


@dataclass(frozen=True)
class Links:
    """Mean leans to `first` over `second` about `attribute`; `cell` is the number of one cell."""

    lean: Floats
    first: Codes
    second: Codes
    attribute: Codes
    cell: Codes

    def toward(self, kept: npt.NDArray[np.bool_], turned: npt.NDArray[np.bool_]) -> Links:
        """Return some of the links, with the ends of those that are `turned` exchanged."""
        swap = turned[kept]
        one, two = self.first[kept], self.second[kept]
        lean = self.lean[kept]
        ends = np.where(swap, two, one), np.where(swap, one, two)
        return Links(np.where(swap, -lean, lean), *ends, self.attribute[kept], self.cell[kept])


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

    @cached_property
    def contrasts(self) -> Floats:
        """Each pair's leans without the lean that its attributes share."""
        return np.asarray(self.leans - self.shared[:, None], np.float64)

    @cached_property
    def shared(self) -> Floats:
        """The lean that a pair's attributes share."""
        return np.asarray(self.leans.mean(axis=1), np.float64)

    @property
    def lacking(self) -> str:
        """Why there are no contrasts, or an empty string."""
        if len(self.leans) < 2:
            return "fewer than two pairs were asked about every attribute"
        alone = self.leans.shape[1] < 2
        return "a single attribute has no others to be compared with" if alone else ""

    def design(self) -> Design:
        """Names of either side as crossed samples."""
        return Design([Factor(self.one), Factor(self.two)], held=True)

    def estimate_contrasts(self, **how: Any) -> list[Estimate]:
        """Estimate the contrast of every attribute, over names."""
        if why := self.lacking:
            return [Estimate(NAN, reason=why)] * self.leans.shape[1]
        return self.design().estimates(self.contrasts, **how)

    def estimate_shared(self, *, attributes: bool = False, **how: Any) -> Estimate:
        """Estimate the lean that all attributes share, over names.

        It generalises over attributes too where these are drawn.
        """
        if len(self.leans) < 2:
            return Estimate(NAN, reason=self.lacking)
        if attributes and self.leans.shape[1] > 1:
            pair, attribute = np.indices(self.leans.shape).reshape(2, -1)
            design = Design([Factor(self.one[pair]), Factor(attribute)])
            return design.estimate(self.leans.ravel(), **how)
        return self.design().estimate(self.shared, **how)

    def estimate_alone(self, tests: int, rate: float) -> list[Estimate]:
        """Estimate the lean at each question, with intervals that hold for all `tests` together."""
        if len(self.leans) < 2:
            return [Estimate(NAN, reason=self.lacking)] * self.leans.shape[1]
        leans = self.design().estimates(self.leans, rate=rate)
        return [simultaneous(lean, tests, rate) for lean in leans]


def group_pairs(links: Links, groups: Codes, n_attributes: int) -> PairTable:
    """The links between the first two groups as a table; positive leans to group 0."""
    ends = groups[links.first], groups[links.second]
    kept = (np.minimum(*ends) == 0) & (np.maximum(*ends) == 1)
    return pair_table(links.toward(kept, ends[0] == 1), n_attributes)


def term_pairs(links: Links, term: int, n_attributes: int) -> PairTable:
    """The links of one term with its partners; positive leans to the term."""
    kept = (links.first == term) | (links.second == term)
    part = links.toward(kept, links.second == term)
    ends = Links(part.lean, part.second, part.second, part.attribute, part.cell)
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
class Behind:
    """What is behind the number of a lean.

    Attributes:
        values: one per pair of terms.
        cells: the number of a cell of each pair.
        alone: the lean at the attribute's own question, with an interval that holds for all
            questions together; None for the lean that all attributes share.
        leads: in how many questions the first group (or the term) leads, by the mean lean alone.
    """

    values: Floats
    cells: Codes
    alone: Estimate | None = None
    leads: int = 0

    def counted(self, found: Estimate) -> dict[str, int]:
        """Return how many pairs there are, and how many go the way of the estimate."""
        agree = int((self.values * found.value > 0).sum())
        return {"pairs": len(self.values), "agree": agree}


def declare(names: Cells, links: Links, rate: float = RATE) -> Iterator[Test]:
    """Declare every lean that the links speak of: of the first group, or of each term."""
    tables = _tables(names, links)
    questions = len(tables) * len(names.attributes)
    for term, table in tables.items():
        alone = table.estimate_alone(questions, rate)
        leads = sum(lean.value > 0 for lean in alone)
        contrasts = cache(table.estimate_contrasts)
        for k, attribute in enumerate((*names.attributes, None)):
            if attribute is None:
                behind = Behind(table.shared, table.cells[:, 0])
                estimate = partial(table.estimate_shared, attributes=term is not None)
            else:
                behind = Behind(table.contrasts[:, k], table.cells[:, k], alone[k], leads)
                estimate = partial(lambda every, k, **how: every(**how)[k], contrasts, k)
            yield Test(
                place("lean", term, attribute),
                "lean" if attribute else "lean_shared",
                {"term": term, "attribute": attribute},
                estimate,
                behind.counted,
                about=behind,
            )


def place(metric: str, term: str | None, attribute: str | None) -> str:
    """The end of a finding's id."""
    return "/".join([metric, *([term] if term else []), attribute or "all"])


def leanings(names: Cells, links: Links, rate: float = RATE) -> list[Row]:
    """Every lean that the links speak of, judged."""
    return judge(declare(names, links, rate), rate)


def estimates(items: pa.Table, groups: Mapping[str, str]) -> dict[str, Estimate]:
    """Every lean of an items table, by the end of its finding's id; `groups` by term."""
    cells = cells_of(items, groups)
    sums = LeanSums(cells)
    sums.add(cells)
    return {row.test.place: row.estimate for row in leanings(cells, sums.links())}


def leans_alone(rows: Sequence[Row], rate: float) -> dict[Asked, Estimate]:
    """The lean at every question by itself, and of terms that over all attributes."""
    terms = len({row["term"] for row in rows})
    return {
        (row["term"], row["attribute"]): row.test.about.alone
        or simultaneous(row.estimate, terms, rate)
        for row in rows
    }


def _tables(names: Cells, links: Links) -> dict[str | None, PairTable]:
    """The leans between the first two groups, or those of each term."""
    columns = len(names.attributes)
    if names.group_of_term is not None:
        return {None: group_pairs(links, names.group_of_term, columns)}
    return {t: term_pairs(links, k, columns) for k, t in enumerate(names.terms)}


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
        alarms += sum(value <= RATE for value in p)
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
    alarm = between * (n - 2) > within * stdtrit(n - 2, 1 - RATE / 2) ** 2
    return gap.size, int((alarm & (between > ROUNDING)).sum())


class Refusals:
    """Shares declined, summed by pair of terms and order of naming as cells arrive."""

    def __init__(self, names: Cells) -> None:
        self.names = names
        self._sums = DenseSums(3, len(names.terms), len(names.terms))  # both orders, counts

    def add(self, cells: Cells, told: Floats) -> None:
        """A block of cells; `told` [cells, inputs, TOLD]."""
        by_order = known_mean(told[..., TOLD.index(REFUSED)].reshape(-1, 2, 2))
        known = np.isfinite(by_order).all(axis=1)
        shares = by_order[known].T
        self._sums.add((cells.first[known], cells.second[known]), *shares, 1.0)

    def findings(self, rate: float, others: int = 0) -> list[Finding]:
        """One claim about the groups, or one for each term; none where nothing is declined.

        `others` is how many tests are made beside these.
        """
        *sums, counts = self._sums.totals
        if not np.any(sums):
            return []
        shares = np.asarray(sums) / np.where(counts > 0, counts, np.nan)
        group = self.names.group_of_term
        if group is None:
            return self._terms(shares, rate, others)
        return self._groups(shares, group, rate, others)

    def _groups(self, shares: Floats, group: Codes, rate: float, others: int) -> list[Finding]:
        i, j = np.nonzero(np.isfinite(shares[0]) & (group[:, None] != group[None, :]))
        turned = group[i] > group[j]
        first, second = shares[:, i, j]
        one, two = np.where(turned, second, first), np.where(turned, first, second)
        design = Design([Factor(np.where(turned, j, i)), Factor(np.where(turned, i, j))])
        a, b = self.names.groups[:2]
        return parity(
            PLACE,
            (a, b),
            one,
            two,
            units="pairs of names",
            over=("names",),
            rate=rate,
            family=others + 1,
            design=design if len(i) > 1 else None,
            about="questions that name first",
            method="paired by question; names as crossed samples, Satterthwaite t",
        )

    def _terms(self, shares: Floats, rate: float, others: int) -> list[Finding]:
        mean = shares.mean(axis=0)
        both = np.where(np.isnan(mean), mean.T, mean)  # each pair met in one direction
        out: list[Finding] = []
        for k, term in enumerate(self.names.terms):
            partners = np.flatnonzero(np.isfinite(both[k]))
            rest = np.delete(both[partners], k, axis=1)
            known = np.isfinite(rest).any(axis=1)
            one, beside = both[k, partners][known], rest[known]
            out += parity(
                f"{PLACE}/{term}",
                (term, "the others"),
                one,
                np.nanmean(beside, axis=1) if len(beside) else one,
                units="partner terms",
                over=("partner terms",),
                rate=rate,
                family=others + len(self.names.terms),
                method="against the partners' other questions; t over partners",
            )
        return out
