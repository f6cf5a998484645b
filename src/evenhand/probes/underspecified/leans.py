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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import Placebo
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
SPLITS = 100
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


@dataclass(frozen=True)
class PairTable:
    """Leans by pair and attribute [pairs, attributes], templates averaged, with the two terms.

    Only pairs that were asked about every attribute are kept, so that contrasts compare the same
    names.
    """

    leans: Floats
    one: Codes
    two: Codes

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
        return Design([Factor(self.one), Factor(self.two)])


def group_pairs(
    lean: Floats, first: Codes, second: Codes, attribute: Codes, groups: Codes, n_attributes: int
) -> PairTable:
    """The cells between the first two groups as a table; positive leans to group 0."""
    ends = groups[first], groups[second]
    kept = (np.minimum(*ends) == 0) & (np.maximum(*ends) == 1) & np.isfinite(lean)
    turned = ends[0][kept] == 1
    one = np.where(turned, second[kept], first[kept])
    two = np.where(turned, first[kept], second[kept])
    signed = np.where(turned, -lean[kept], lean[kept])
    return pair_table(signed, one, two, attribute[kept], n_attributes)


def term_pairs(
    term: int, lean: Floats, first: Codes, second: Codes, attribute: Codes, n_attributes: int
) -> PairTable:
    """The cells of one term with its partners; positive leans to the term."""
    kept = ((first == term) | (second == term)) & np.isfinite(lean)
    turned = second[kept] == term
    partner = np.where(turned, first[kept], second[kept])
    signed = np.where(turned, -lean[kept], lean[kept])
    return pair_table(signed, partner, partner, attribute[kept], n_attributes)


def pair_table(lean: Floats, one: Codes, two: Codes, attribute: Codes, columns: int) -> PairTable:
    """Mean lean of each pair about each attribute; pairs that lack an attribute are left out."""
    width = int(max(one.max(initial=0), two.max(initial=0))) + 1
    known, pair = np.unique(one * width + two, return_inverse=True)
    total, count = np.zeros((2, len(known), columns))
    np.add.at(total, (pair, attribute), lean)
    np.add.at(count, (pair, attribute), 1.0)
    whole = (count > 0).all(axis=1)
    ends = np.divmod(known[whole], width)
    return PairTable(total[whole] / count[whole], ends[0], ends[1])


def contrasts(table: PairTable, family: int, rate: float = ALARM) -> list[Estimate]:
    """One estimate per attribute: its contrast, over names."""
    if len(table.leans) < 2 or table.leans.shape[1] < 2:
        return [Estimate(float("nan"), reason=_lacking(table))] * table.leans.shape[1]
    return table.design().estimates(table.contrasts, family=family, rate=rate)


def shared_lean(table: PairTable, family: int, rate: float = ALARM) -> Estimate:
    """The lean that all attributes share, over names."""
    if len(table.leans) < 2:
        return Estimate(float("nan"), reason=_lacking(table))
    return table.design().estimate(table.shared, family=family, rate=rate)


def _lacking(table: PairTable) -> str:
    if len(table.leans) < 2:
        return "fewer than two pairs were asked about every attribute"
    return "a single attribute has no others to be compared with"


def halves(table: PairTable, what: str, seed: int, splits: int = SPLITS) -> Placebo:
    """Random halves of one group's names against each other: there is nothing to find.

    The names of group 0 are split; pairs of the first half are compared with pairs of the second,
    attribute by attribute, by the very test that the findings rest on.
    """
    rng = np.random.default_rng([seed, 7])
    names = np.unique(table.one)
    if len(names) < 4 or table.leans.shape[1] < 2:
        return Placebo(what, 0, 0)
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
