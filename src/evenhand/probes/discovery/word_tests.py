"""Which words differ between two groups of names, over names and situations.

A wrong answer that wins for some names wins whatever its words are: a model reads rare names less
well, say. That moves all words alike. What a word does beyond that is its contrast within name and
situation,

    beyond(w; n, c) = SR(w; n, c) - mean over typical words of SR(.; n, c)

where the typical words are the half of the vocabulary whose difference of groups is nearest the
median, so that a few words with strong differences do not move what they are compared with (as in
the trimmed means of Robinson and Oshlack 2010). What the typical words share is a test of its own.
Fewer than `ENOUGH` words have no middle; then the rates themselves are compared.

Names and situations are both samples (`stats.two_groups`): a difference that hangs on the few
situations in which a word happened to be offered is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from evenhand.metrics.sodapop import Floats, success_rate
from evenhand.probes.base import TOO_FEW, Placebo
from evenhand.probes.discovery.counts import WordCounts
from evenhand.stats.estimate import NAN, Estimate, detectable
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.two_groups import Contrasts, group_contrasts
from evenhand.strict import UNWRITTEN

Marks = npt.NDArray[np.bool_]
ENOUGH = 8
"""Words from which on a middle half can be told."""
LEAST = 3
"""Situations in which a word must have been offered, where a run has this many."""
FEW_SITUATIONS = "shown with names of both groups in too few situations to speak of others"
SPLITS = 100
ALARM = 0.05


@dataclass(frozen=True)
class Tested:
    """A difference of two groups with everything that follows from its variance.

    `q` is corrected over the words it was tested with, `situations` are those in which both groups
    had a value, and `units` is the scarcer of names and situations. `alone` is the difference of
    the word by itself, where the value compares it with the typical word.
    """

    value: float
    low: float
    high: float
    p: float
    q: float
    error: float
    freedom: float
    detectable: float
    situations: int
    units: int
    reason: str
    alone: Estimate | None = field(default=None, metadata=UNWRITTEN)

    def estimate(self) -> Estimate:
        return Estimate(
            self.value,
            self.error,
            self.freedom,
            self.low,
            self.high,
            self.p,
            self.detectable,
            self.units,
            reason=self.reason,
        )


@dataclass(frozen=True)
class PairTests:
    """The tests of one pair of groups: of each word, and of the typical one."""

    words: Contrasts
    typical: Contrasts | None
    """None where words are compared as they are."""


def cell_rates(counts: WordCounts) -> Floats:
    """Success rates [names, contexts, words]; NaN where a word was not shown."""
    return success_rate(counts.won, counts.shown)


def pair_tests(rates: Floats, in_a: Marks, typical: Marks | None = None) -> PairTests:
    """Every word of one pair of groups.

    Args:
        rates: [names, contexts, words] of the names of both groups.
        in_a: which names are of the first group.
        typical: the words to compare with; by default found among these.
    """
    least = min(LEAST, rates.shape[1])
    chosen = typical_words(rates, in_a) if typical is None else typical
    if not chosen.any():
        return PairTests(group_contrasts(rates, in_a, least), None)
    known = ~np.isnan(rates)
    filled = np.where(known, rates, 0.0)
    total, count = filled[..., chosen].sum(axis=2), known[..., chosen].sum(axis=2)
    # A typical word is compared with the other typical ones.
    rest = total[..., None] - np.where(chosen, filled, 0.0)
    size = count[..., None] - (known & chosen)
    beyond = rates - success_rate(rest, size)
    shared = success_rate(total, count)[..., None]
    return PairTests(group_contrasts(beyond, in_a, least), group_contrasts(shared, in_a, least))


def typical_words(rates: Floats, in_a: Marks) -> Marks:
    """The half of the words whose difference of groups is nearest the median; none of a few."""
    chosen = np.zeros(rates.shape[2], bool)
    known = ~np.isnan(rates)
    filled = np.where(known, rates, 0.0)
    means = [success_rate(filled[g].sum(axis=0), known[g].sum(axis=0)) for g in (in_a, ~in_a)]
    apart = means[0] - means[1]
    both = ~np.isnan(apart)
    d = success_rate(np.where(both, apart, 0.0).sum(axis=0), both.sum(axis=0))
    usable = int((~np.isnan(d)).sum())
    if usable >= ENOUGH:
        chosen[np.argsort(np.abs(d - np.nanmedian(d)), kind="stable")[: -(-usable // 2)]] = True
    return chosen


def pair_rows(rates: Floats, in_a: Marks, why: str = "") -> list[Tested]:
    """The tests of a pair as rows, not yet corrected: of each word, then of the typical one.

    `why` says why a test could not be made, if not for want of situations.
    """
    made = pair_tests(rates, in_a)
    alone: list[Estimate] = []
    if made.typical is not None:
        alone = group_contrasts(rates, in_a, min(LEAST, rates.shape[1])).estimates()
    rows = [
        Tested(
            e.value,
            e.low,
            e.high,
            e.p,
            NAN,
            e.error,
            e.freedom,
            e.detectable,
            int(k),
            e.units,
            e.reason if e.value == e.value else why or FEW_SITUATIONS,
        )
        for part in (made.words, made.typical)
        if part is not None
        for e, k in zip(part.estimates(), part.situations)
    ]
    words = [replace(row, alone=estimate) for row, estimate in zip(rows, alone)]
    return [*words, *rows[len(words) :]]


def corrected(rows: Sequence[Tested], rate: float) -> list[Tested]:
    """The same with q over all of them, and what is detectable among this many."""
    p = [row.p for row in rows]
    tests = sum(value == value for value in p)
    return [
        replace(row, q=float(q), detectable=detectable(row.error, row.freedom, tests, rate))
        for row, q in zip(rows, benjamini_hochberg(p))
    ]


def halves(counts: WordCounts, groups: Sequence[str], seed: int) -> tuple[Placebo, ...]:
    """Random halves of one group's names against each other: there is nothing to find.

    At least `SPLITS` splits over all groups, each tested word by word as pairs of groups are.
    """
    rates, labels = cell_rates(counts), np.asarray(counts.groups)
    each = max(SPLITS // 4, -(-SPLITS // max(1, len(groups))))
    out = []
    for number, group in enumerate(groups):
        mine = rates[labels == group]
        if len(mine) < 4 or not mine.shape[2]:
            continue
        rng = np.random.default_rng([seed, number, 7])
        p = [_of_halves(mine, rng) for _ in range(each)]
        known = np.concatenate(p)
        known = known[~np.isnan(known)]
        if len(known):
            what = f"random halves of the names of {group}"
            out.append(Placebo(what, len(known), int((known <= ALARM).sum())))
    return tuple(out) or (Placebo("random halves of one group's names", 0, 0, TOO_FEW),)


def _of_halves(rates: Floats, rng: np.random.Generator) -> Floats:
    order = rng.permutation(len(rates))
    made = pair_tests(rates, order < len(rates) // 2)
    rest = made.typical.p() if made.typical else np.empty(0)
    return np.concatenate([made.words.p(), rest])
