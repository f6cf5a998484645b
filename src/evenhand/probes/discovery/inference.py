"""Two groups of names compared word by word: SODAPOP's numbers, verdicts beyond them, clusters.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.compare.rows import Reported, Row, Test, judge
from evenhand.errors import DataError, unknown
from evenhand.metrics import sodapop
from evenhand.metrics.sodapop import Floats, success_rate
from evenhand.probes.base import FDR, TOO_FEW, Placebo
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.shared.reach import out_of_reach
from evenhand.stats import clustering, permutation
from evenhand.stats.estimate import NAN, Estimate, detectable
from evenhand.stats.two_groups import Contrasts, group_contrasts

Marks = npt.NDArray[np.bool_]
ENOUGH = 8
"""Words from which on a middle half can be told."""
LEAST = 3
"""Situations in which a word must have been offered, where a run has this many."""
FEW_SITUATIONS = "shown with names of both groups in too few situations to speak of others"
SPLITS = 100
ALARM = 0.05


NUMBERS = ("value", "low", "high", "p", "q", "error", "freedom", "detectable")
VERDICT = (*NUMBERS, "situations", "units", "reason")
"""What is recorded of a verdict; q is its row's."""


@dataclass(frozen=True, eq=False)
class Verdict(Estimate):
    """A difference of two groups over names and situations.

    Attributes:
        situations: how many there are in which both groups had a value.
        alone: the difference of the word by itself, where the value compares it with the typical
            word.
    """

    situations: int = 0
    alone: Estimate | None = None

    def recorded(self) -> dict[str, Any]:
        return {name: getattr(self, name, NAN) for name in VERDICT}

    def test(self) -> Test:
        """The test of it, without a name; what is detectable depends on the family."""
        return Test("", "", {}, self._among, tested=self.p == self.p, about=self.alone)

    def _among(self, family: int, rate: float) -> Verdict:
        return replace(self, detectable=detectable(self.error, self.freedom, family, rate))


def fixed(estimate: Estimate) -> Callable[..., Estimate]:
    """What estimates a number that is known, whatever else is tested."""
    return lambda **_: estimate


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
    middle = typical_words(rates, in_a) if typical is None else typical
    if not middle.any():
        return PairTests(group_contrasts(rates, in_a, least), None)
    known = ~np.isnan(rates)
    filled = np.where(known, rates, 0.0)
    total, count = filled[..., middle].sum(axis=2), known[..., middle].sum(axis=2)
    # A typical word is compared with the other typical ones.
    rest = total[..., None] - np.where(middle, filled, 0.0)
    size = count[..., None] - (known & middle)
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


def pair_verdicts(rates: Floats, in_a: Marks, why: str = "") -> list[Verdict]:
    """The verdicts of a pair, each for itself: on each word, then on the typical one.

    `why` says why a test could not be made, if not for want of situations.
    """
    tests = pair_tests(rates, in_a)
    parts, alone = [tests.words], list[Estimate]()
    if tests.typical is not None:
        parts.append(tests.typical)
        alone = group_contrasts(rates, in_a, min(LEAST, rates.shape[1])).estimates()
    each = [(e, int(k)) for part in parts for e, k in zip(part.estimates(), part.situations)]
    return [
        Verdict(
            **{**vars(e), "reason": e.reason if e.value == e.value else why or FEW_SITUATIONS},
            situations=k,
            alone=by_itself,
        )
        for (e, k), by_itself in zip_longest(each, alone)
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
        p = np.concatenate([_of_halves(mine, rng) for _ in range(each)])
        known = p[~np.isnan(p)]
        if len(known):
            what = f"random halves of the names of {group}"
            out.append(Placebo(what, len(known), int((known <= ALARM).sum())))
    return tuple(out) or (Placebo("random halves of one group's names", 0, 0, TOO_FEW),)


def _of_halves(rates: Floats, rng: np.random.Generator) -> Floats:
    order = rng.permutation(len(rates))
    made = pair_tests(rates, order < len(rates) // 2)
    rest = made.typical.p() if made.typical else np.empty(0)
    return np.concatenate([made.words.p(), rest])


RELEASED_RESTARTS = 10


@dataclass(frozen=True)
class Compared:
    """A pair of groups: words by rd downwards (positive leans to group A), and the clusters.

    Attributes:
        words: the value of a row is rd; its interval, p and q re-label names, so that they hold for
            these situations. Under `beyond` is the verdict over names and situations, beyond the
            typical word; as published there is none.
        clustering: how well two clusters of names recover the groups, beside permuted labels.
        p_method: how p was obtained, from `n_partitions` splits of the names.
        typical: the difference of the typical word, where words are compared with it.
    """

    words: Sequence[Row]
    clustering: Mapping[str, Any]
    p_method: str
    n_partitions: int
    reason: str
    typical: Row | None


@dataclass(frozen=True)
class Settings:
    """How to test."""

    samples: int | None = None
    seed: int = 0
    as_published: bool = False
    restarts: int = 200
    rate: float = FDR
    """q up to which a word is called detected."""


SAMPLES = 99_999


def rates(counts: WordCounts) -> Floats:
    """Success rates [names, words]; NaN where a word was never shown with a name."""
    return sodapop.success_rate(*counts.of_names())


def compare(counts: WordCounts, group_a: str, group_b: str, settings: Settings) -> Compared:
    """One pair of groups: a row per word, the clusters, and how p was obtained."""
    labels = np.asarray(counts.groups)
    used = np.flatnonzero((labels == group_a) | (labels == group_b))
    used = np.concatenate([used[labels[used] == group_a], used[labels[used] == group_b]])
    in_a = labels[used] == group_a
    values = rates(counts)[used]
    if settings.as_published:
        values = np.nan_to_num(values)
    sides = sodapop.contrast(values, in_a, as_published=settings.as_published)
    p, p_max_t, method, n_partitions = _test(values, in_a, settings)
    won, shown = counts.of_names()
    reason = _reason(counts, used, in_a)
    coarse = out_of_reach(1 / max(1, n_partitions), len(p))
    if coarse and not reason and not settings.as_published:
        reason = f"d, by re-labelled names: {coarse}"
    beyond, typical = _verdicts(counts, used, in_a, settings, reason)
    low, high, d_low, d_high = _ends(
        values, in_a, float(in_a.sum()) if settings.as_published else 1.0
    )
    columns = {
        "n": shown[used].sum(axis=0).astype(np.int64),
        "sr_a": sides.sr_a,
        "sr_b": sides.sr_b,
        "d": sides.d,
        "m": sides.m,
        "rd": sides.rd,
        "log_odds": sodapop.log_odds(won[used], shown[used], in_a),
        "p": p,
        "p_max_t": p_max_t,
        "q": np.full(len(p), NAN),
        "low": low,
        "high": high,
        "d_low": d_low,
        "d_high": d_high,
    }
    order = np.argsort(-np.where(np.isnan(sides.rd), -np.inf, sides.rd), kind="stable")
    listed = {name: column[order].tolist() for name, column in columns.items()}
    tests = [
        _of_word({"word": counts.words[i], **dict(zip(listed, numbers))}, beyond[i])
        for i, numbers in zip(order, zip(*listed.values()))
    ]
    clusters = _clusters(values, in_a, settings)
    return Compared(judge(tests, settings.rate), clusters, method, n_partitions, reason, typical)


def _of_word(columns: Mapping[str, Any], beyond: Row | None) -> Test:
    """SODAPOP's test of a word, with the verdict beyond it."""
    ends = {name: columns[name] for name in ("low", "high", "p")}
    rd = Reported(columns["rd"], **ends, columns=columns)
    return Test("", "rd", {}, fixed(rd), {} if beyond is None else {"beyond": beyond})


def _verdicts(
    counts: WordCounts, used: np.ndarray, in_a: np.ndarray, settings: Settings, reason: str
) -> tuple[Sequence[Row | None], Row | None]:
    """What each word does beyond the typical one, and the typical one itself."""
    if settings.as_published or not counts.words:
        return [None] * len(counts.words), None
    why = reason if "name" in reason else ""
    verdicts = pair_verdicts(cell_rates(counts)[used], in_a, why)
    rows = judge((verdict.test() for verdict in verdicts), settings.rate)
    return rows, rows[-1] if len(rows) > len(counts.words) else None


def _ends(values: Floats, in_a: np.ndarray, scale: float) -> tuple[Floats, ...]:
    """Low and high of the printed RD, then of d: names are the sample, as in p.

    With the groups' means a and b, their squared errors and Welch's t, d has a - b -+ t error. RD
    is a function of a / b, whose limits are Fieller's (1954), the ratios r >= 0 with
    (a - r b)^2 <= t^2 (error_a^2 + r^2 error_b^2): they leave out 1 when those of d leave out 0,
    up to the degrees of freedom, and end at RD's own bounds where a mean may be 0.
    """
    from scipy.special import stdtrit

    (a, v_a, n_a), (b, v_b, n_b) = (_mean(values[side]) for side in (in_a, ~in_a))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (v_a + v_b) ** 2 / (v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1))
        t = stdtrit(np.where(v_a + v_b > 0, freedom, 1.0), 0.975)
        reach = t * np.sqrt(v_a + v_b)
        top, bottom = a * a - t * t * v_a, b * b - t * t * v_b
        both = a * b + np.sqrt(np.maximum(a * a * b * b - top * bottom, 0.0))
        low = np.where(top > 0, 2 * (top - both) / (top + both), -2.0)
        high = np.where(bottom > 0, 2 * (both - bottom) / (both + bottom), 2.0)
    known = ~np.isnan(reach)
    low, high = (np.where(known, end * scale, np.nan) for end in (low, high))
    return low, high, a - b - reach, a - b + reach


def _mean(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over the names that have a value, its squared error, and how many there are."""
    n = (~np.isnan(values)).sum(axis=0).astype(float)
    mean = sodapop.success_rate(np.nansum(values, axis=0), n)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.where(n > 1, squares / np.maximum(n * (n - 1), 1), np.nan), n


def _test(values: Floats, in_a: np.ndarray, settings: Settings) -> tuple[Floats, Floats, str, int]:
    """p, the p over all words, how they were obtained, and from how many splits."""
    nothing = np.full(values.shape[1], np.nan)
    if not values.shape[1]:
        return nothing, nothing, "no words", 0
    if settings.as_published:
        released = permutation.as_published_sodapop(values, in_a, settings.samples)
        return released.p, nothing, "as published", released.samples
    samples = settings.samples or SAMPLES
    relabelled = permutation.shared(values, in_a, samples=samples, seed=settings.seed)
    return relabelled.p, relabelled.p_max_t, relabelled.method, relabelled.n_partitions


def _clusters(values: Floats, in_a: np.ndarray, settings: Settings) -> dict[str, Any]:
    """K-means accuracy with its exact permuted-label null, and linear separability."""
    usable = values[:, ~np.isnan(values).any(axis=0)]
    if not usable.shape[1]:
        usable = np.full((len(values), 1), np.nan)
    restarts = RELEASED_RESTARTS if settings.as_published else settings.restarts
    seed = 0 if settings.as_published else settings.seed
    means = clustering.kmeans_separation(usable, in_a, restarts=restarts, seed=seed)
    columns = {
        "kmeans_accuracy": means.accuracy,
        "null_mean": means.null_mean,
        "null_p95": means.null_p95,
        "p": means.p,
        "restarts": restarts,
        "reason": means.reason,
    }
    if settings.as_published:
        return columns
    line = clustering.linear_separability(usable, in_a, seed=settings.seed)
    straight = {"linear_accuracy": line.accuracy, "linear_p": line.p}
    return {**columns, **straight, "linear_null_p95": line.null_p95}


def _reason(counts: WordCounts, used: np.ndarray, in_a: np.ndarray) -> str:
    if not counts.words:
        return "no word is left after the filter; lower --min-count or show more distractors"
    small = [int(s) for s in (in_a.sum(), (~in_a).sum()) if s < 2]
    if small:
        return "a group has one name only: it stands for itself, and there is no interval"
    if len(counts.contexts) < 2:
        return "one context: only names are a sample"
    return ""


def check_groups(present: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Refuse groups that the table does not have, or a group against itself."""
    for name in wanted:
        if name not in present:
            raise DataError(unknown("group", name, set(present), where=where))
    if len(set(wanted)) < len(wanted):
        raise DataError(f"{where}: group {wanted[0]!r} is compared with itself.")
