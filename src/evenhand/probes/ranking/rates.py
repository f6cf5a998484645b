"""Selection rates, ratios to the best group, what chance gives, and the verdict about each group.

A group's selection rate is how often its candidates come first. Its ratio to the best group's is
the number of the four-fifths rule; the best of eight groups is partly the luckiest, so ratios lie
below 1 for a ranker that does not look at groups too. Three things stand beside each:

    interval   with the truly best group, whichever it is: log-ratios to every group at once
               (Dunnett's constant), as in multiple comparisons with the best (Hsu 1984)
    floor      of rankers that do not look at groups, 5 of 100 have a smallest ratio below it
    verdict    of the rate beside the share that falls to the group by chance, rate / share - 1:
               names were sampled (or runs, where names are not known), t over them
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import Placebo
from evenhand.probes.ranking.liked import Liked, centred
from evenhand.probes.ranking.rankings import Rankings
from evenhand.stats.clustered_means import (
    LEAST,
    STEADY,
    ClusteredMean,
    clustered_mean,
    halves,
    with_q,
)
from evenhand.stats.estimate import NAN, Estimate, detectable_t, estimate, settled

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
ODDS = 6
"""How far odds are moved, as logits: 400 times and 1 / 400."""
DRAWS = 20_000
"""Simulated rankers without a preference behind a floor."""
QUANTILE = 0.05
FIFTHS = 0.8


@dataclass(frozen=True, kw_only=True)
class RateRow:
    """One group in one stratum.

    `low`, `high` are of the ratio; `value` is rate / share - 1 with its own interval, from which p
    and q come. `floor` is the 5 % point of the smallest ratio of rankers that do not look at
    groups, `floor_each` that of a given group's; `chance` the share of such rankers whose smallest
    ratio is as small as this one.
    """

    stratum: str
    group: str
    n: int
    top: float
    rate: float
    ratio: float
    low: float
    high: float
    floor: float
    floor_each: float
    chance: float
    below_floor: bool
    share: float
    value: float
    value_low: float
    value_high: float
    p: float
    detectable: float
    q: float = NAN
    n_names: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Floors:
    """What rankers that do not look at groups give: smallest ratios, each group's 5 % point."""

    least: Floats
    each: Floats

    @property
    def smallest(self) -> float:
        return float(np.quantile(self.least, QUANTILE))

    def chance(self, ratio: float) -> float:
        """The share of rankers whose smallest ratio is as small."""
        return float((self.least <= ratio).mean())


def advantage(
    rows: Rankings,
    side: Flags,
    *,
    lead: Floats | None = None,
    liked: Liked | None = None,
    family: int = 1,
    rate: float = 0.05,
) -> Estimate:
    """How much more often than by chance the candidates of a side come first: rate / share - 1.

    Two things vary: who wins a run, and which names were drawn, on this side and among its rivals.
    With x for the rows of the side, each 1 / their number, less the mean of its run,

        variance = V_runs + v (sum over names of (sum of x)^2 - sum of x^2)

    V_runs is clustered by run (CR2), and at least what rows of all groups vary: few wins vary
    little by chance. It holds names too, as if drawn anew each time; v is the variance of what a
    name adds (`liked`), which comes back with the name.

    Args:
        side: which rows are of the side.
        lead: top / share - 1 of every row, where it is known already.
        liked: how much names matter; from these rows by default.

    >>> from evenhand.probes.ranking.rankings import Rankings
    >>> runs = [str(k // 2) for k in range(80)]
    >>> won = (np.arange(80) % 2 == 0) ^ (np.arange(80) % 20 == 0) ^ (np.arange(80) % 20 == 1)
    >>> rows = Rankings(["all"] * 80, runs, ["a", "b"] * 40, np.tile([1, 2], 40), won * 1.0)
    >>> found = advantage(rows, np.asarray([g == "a" for g in rows.group]))
    >>> round(found.value, 2), found.p < 0.001, found.units
    (0.8, True, 40)
    """
    share = float(rows.share[side].mean()) if side.any() else NAN
    if not side.any() or side.all():
        why = "no candidate of this group was shown" if not side.any() else "there is one group"
        return Estimate(NAN, reason=why)
    if lead is None:
        lead = rows.top / rows.share - 1
    how: dict[str, Any] = {"bounds": (-1.0, 1 / share - 1), "family": family, "rate": rate}
    runs = clustered_mean(lead[side], rows.runs[side], **how)
    liked = liked or Liked.of(rows, lead)
    x = centred(side / side.sum(), rows.runs)
    codes = liked.codes
    back = 0.0 if codes is None else float((np.bincount(codes, weights=x) ** 2).sum() - x @ x)
    of_all, of_names = (
        (liked.rest + liked.variance) * float(x @ x),
        liked.variance * max(0.0, back),
    )
    over_runs = max(runs.error**2, of_all)
    variance = over_runs + of_names
    if not variance > 0 or not runs.error >= 0:
        units = rows.runs if codes is None else codes
        return _estimate(clustered_mean(lead[side], units[side], **how))
    freedom = max(1.0, variance**2 / (over_runs**2 / runs.freedom + back**2 * liked.noise))
    found = estimate(
        runs.value,
        math.sqrt(variance),
        freedom,
        family=family,
        rate=rate,
        units=runs.n_clusters if codes is None else len(np.unique(codes[side])),
    )
    low, high = (float(np.clip(end, *how["bounds"])) for end in (found.low, found.high))
    by_run = float(rows.share[side].sum()) / len(np.unique(rows.runs[side]))
    spread = Spread(of_all or over_runs, of_names, by_run, _picked(rows, side))
    seen = spread.detectable(freedom, rate / max(1, family))
    return replace(found, low=low, high=high, detectable=seen)


def _picked(rows: Rankings, side: Flags) -> Floats | None:
    """The probability of each run that its pick is of the side; None of single answers."""
    if np.isin(rows.top, (0.0, 1.0)).all():
        return None
    won = np.bincount(rows.runs, weights=rows.top * side)
    return np.asarray(won[np.bincount(rows.runs, weights=side) > 0], np.float64)


@dataclass(frozen=True)
class Spread:
    """How much an advantage varies, by how large it is.

    A rate of s (1 + a) instead of the share s multiplies the variance of single answers by

        f(a) = (1 + a) (1 - s (1 + a)) / (1 - s)

    and that of what names add, which move logits, by its square. Where the probability P of a pick
    from the side is known in every run, both grow as the mean of (P (1 - P))^2 does when the odds
    are multiplied in all of them: what is likely already grows less.

    Attributes:
        runs, names: variance without an advantage, over runs and from names that come back. Over
            runs it is that of the rows of all groups: a group's own is the larger the more it wins.
        share: s, of all candidates of the side in a run.
        picked: P of every run; None of single answers.
    """

    runs: float
    names: float
    share: float
    picked: Floats | None = None

    @cached_property
    def _moved(self) -> tuple[Floats, Floats] | None:
        """Advantages and how much more varies with them, for odds from far below to far above."""
        if self.picked is None:
            return None
        odds = np.exp(np.linspace(-ODDS, ODDS, 16 * ODDS + 1))[:, None]
        p = odds * self.picked / (1 + (odds - 1) * self.picked)
        rate, varies = p.mean(axis=1), ((p * (1 - p)) ** 2).mean(axis=1)
        now = float(np.interp(self.share, rate, varies))
        return (rate / self.share - 1, varies / now) if now > 0 else None

    def detectable(self, freedom: float, level: float) -> float:
        """The advantage that is found in 80 of 100 such audits at this level.

        A test finds what is beyond its limit l = c sqrt(V(l)), with the variance that it sees
        there (of names, that of all groups); d - c errors more, those of the advantage itself, and
        it does so in 80 of 100. Of more and less than its share the harder one counts.

        >>> few, even = Spread(0.08, 0.0, 0.125), Spread(1e-4, 0.0, 0.5)
        >>> round(few.detectable(1e6, 0.05), 2), round(even.detectable(1e6, 0.05), 3)
        (0.99, 0.028)
        >>> round(replace(few, picked=np.full(9, 0.125)).detectable(1e6, 0.05), 2)
        1.38
        """
        from scipy.special import stdtrit

        c = float(stdtrit(freedom, 1 - level / 2))
        more = detectable_t(freedom, level) - c

        def reach(way: int, most: float) -> float:
            def error(a: float, names: bool) -> float:
                runs, of_names = self._grown(way * a)
                return math.sqrt(self.runs * runs + self.names * (of_names if names else 1.0))

            limit = settled(lambda a: c * error(a, False), most)
            return settled(lambda a: limit + more * error(a, True), most)

        return max(reach(1, 1 / self.share - 1), reach(-1, 1.0))

    def _grown(self, a: float) -> tuple[float, float]:
        """By how much runs and names vary more at this advantage."""
        if self._moved is not None:
            times = float(np.interp(a, *self._moved))
            return times, times
        f = max(0.0, (1 + a) * (1 - self.share * (1 + a)) / (1 - self.share))
        return f, f * f


def _estimate(found: ClusteredMean) -> Estimate:
    return Estimate(
        found.value,
        found.error,
        found.freedom,
        found.low,
        found.high,
        found.p,
        found.detectable,
        found.n_clusters,
        reason=found.reason or "",
    )


def tallies(rows: Rankings, groups: Sequence[str]) -> tuple[Floats, Floats]:
    """How often each group came first, and how often it was shown, by run [runs, groups]."""
    place = {group: k for k, group in enumerate(groups)}
    at = np.asarray([place[g] for g in rows.group], np.int64)
    size = int(rows.runs.max(initial=-1)) + 1
    won, shown = np.zeros((size, len(groups))), np.zeros((size, len(groups)))
    np.add.at(won, (rows.runs, at), rows.top)
    np.add.at(shown, (rows.runs, at), 1.0)
    return won, shown


def floors(won: Floats, shown: Floats, seed: int = 0, draws: int = DRAWS) -> Floors:
    """Ratios to the best group if groups do not matter, for runs like these.

    In every run the winner is any of those shown, with equal chances; where `won` are
    probabilities, they are dealt out anew among those shown (normal, since they are many).

    >>> even = floors(np.eye(8)[np.arange(1_000) % 8], np.ones((1_000, 8)))
    >>> round(even.smallest, 2), round(even.chance(FIFTHS), 2)
    (0.68, 0.65)
    """
    rng = np.random.default_rng([seed, 144])
    total = np.zeros((draws, won.shape[1]))
    whole = bool(np.isin(won, (0.0, 1.0)).all())
    for kind, at in _compositions(shown):
        size = kind.sum()
        if whole:
            total += rng.multinomial(int(won[at].sum()), kind / size, draws)
            continue
        # A run's probabilities, one of them per candidate; what is summed by group spreads less.
        spread = float((won[at] ** 2).sum() - (won[at].sum(axis=1) ** 2 / size).sum())
        parts = np.sqrt(kind) * rng.standard_normal((draws, len(kind)))
        parts -= kind / size * parts.sum(axis=1, keepdims=True)
        total += won[at].sum() * kind / size + parts * math.sqrt(max(0.0, spread) / (size - 1))
    rates = np.maximum(total, 0.0) / np.maximum(shown.sum(axis=0), 1)
    best = rates.max(axis=1, keepdims=True)
    ratios = rates / np.where(best > 0, best, 1.0)
    return Floors(ratios.min(axis=1), np.quantile(ratios, QUANTILE, axis=0))


def _compositions(shown: Floats) -> Iterator[tuple[Floats, Flags]]:
    kinds, at = np.unique(shown, axis=0, return_inverse=True)
    for k, kind in enumerate(kinds):
        yield kind, np.ravel(at) == k


def ratio_intervals(won: Floats, shown: Floats, wider: Floats) -> tuple[Floats, Floats]:
    """95 % intervals of all ratios to the truly best group at once.

    Args:
        won, shown: by run and group.
        wider: by which factor the variance of each group's rate exceeds that over runs.
    """
    n, k = shown.sum(axis=0), won.shape[1]
    total = won.sum(axis=0)
    rate = total / n
    low, high = np.zeros(k), np.ones(k)
    some = total > 0
    with np.errstate(divide="ignore"):
        logs = np.log(rate)
    away = np.where(some, (won - rate * shown) / np.where(some, total, 1.0), 0.0)
    reach = np.zeros((k, k))
    for g in range(k):
        gap = ((away[:, [g]] - away) ** 2).sum(axis=0) * len(won) / max(1, len(won) - 1)
        reach[g] = dunnett(k) * np.sqrt(gap * np.maximum(wider[g], wider))
    apart = np.where(some[:, None], logs[:, None], -1e3) - np.where(some, logs, -1e6)
    others = ~np.eye(k, dtype=bool) & some
    upper = np.where(others, apart + reach, np.inf).min(axis=1)
    contend = upper >= 0  # groups that may be the best
    for g in range(k):
        rivals = others[g] & contend
        high[g] = math.exp(min(0.0, upper[g]))
        below = (apart[g] - reach[g])[rivals]
        low[g] = math.exp(min(0.0, float(below.min()))) if rivals.any() else 1.0
        if not some[g]:  # never first: at most so often (Clopper and Pearson)
            low[g], high[g] = 0.0, min(1.0, (1 - 0.025 ** (1 / n[g])) / rate.max())
    return low, high


@cache
def dunnett(groups: int, level: float = 0.95) -> float:
    """How many standard errors all differences from one of this many groups keep to (Dunnett 1955).

    >>> round(dunnett(2), 2), round(dunnett(8), 2)
    (1.96, 2.61)
    """
    from scipy.special import ndtr

    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    low, high = 1.0, 6.0
    for _ in range(50):
        c = (low + high) / 2
        inside = (ndtr(z + c * math.sqrt(2)) - ndtr(z - c * math.sqrt(2))) ** (groups - 1)
        low, high = (c, high) if float(weight @ inside) < level else (low, c)
    return (low + high) / 2


def rate_rows(
    rankings: Rankings, *, seed: int = 0, family: int = 0, rate: float = 0.05
) -> tuple[list[RateRow], dict[str, Floors]]:
    """Every group of every stratum, q corrected over all of them; and the floors by stratum."""
    rows: list[RateRow] = []
    known: dict[str, Floors] = {}
    strata = rankings.strata
    many = family or sum(len(rankings.of(s).groups) for s in strata)
    for stratum in strata:
        part = rankings.of(stratum)
        groups = part.groups
        won, shown = tallies(part, groups)
        sides = [np.asarray([g == group for g in part.group]) for group in groups]
        lead = part.top / part.share - 1
        liked = Liked.of(part, lead)
        how: dict[str, Any] = {"lead": lead, "liked": liked, "family": many, "rate": rate}
        found = [advantage(part, side, **how) for side in sides]
        alone = [_over_runs(part, side) for side in sides]
        wider = np.asarray(
            [
                max(1.0, (e.error / a) ** 2) if e.error > 0 and a > 0 else 1.0
                for e, a in zip(found, alone)
            ]
        )
        chance = known[stratum] = floors(won, shown, seed)
        low, high = ratio_intervals(won, shown, wider)
        n, top = shown.sum(axis=0), won.sum(axis=0)
        best = float((top / n).max())
        for k, (group, side, e) in enumerate(zip(groups, sides, found)):
            each = float(top[k] / n[k])
            ratio = each / best if best > 0 else NAN
            names = None if part.name is None else e.units
            rows.append(
                RateRow(
                    stratum=stratum,
                    group=group,
                    n=int(n[k]),
                    top=_count(top[k]),
                    rate=each,
                    ratio=ratio,
                    low=float(low[k]),
                    high=float(high[k]),
                    floor=chance.smallest,
                    floor_each=float(chance.each[k]),
                    chance=chance.chance(ratio),
                    below_floor=bool(ratio < chance.smallest),
                    share=float(part.share[side].mean()),
                    value=e.value,
                    value_low=e.low,
                    value_high=e.high,
                    p=e.p,
                    detectable=e.detectable,
                    n_names=names,
                    reason=e.reason or None,
                )
            )
    return with_q(rows, [row.p for row in rows]), known


def _over_runs(rows: Rankings, side: Flags) -> float:
    """Standard error over runs alone."""
    lead = (rows.top / rows.share - 1)[side]
    return clustered_mean(lead, rows.runs[side]).error


def _count(value: float) -> float:
    """Wins are counted; only probabilities have decimals."""
    return int(value) if float(value).is_integer() else float(value)


@dataclass(frozen=True)
class PositionRow:
    """How often the candidate shown at this place came first."""

    stratum: str
    position: int
    rate: float


def position_rows(rankings: Rankings) -> list[PositionRow]:
    """By stratum and position: the share of runs whose winner was shown there."""
    out = []
    for stratum in rankings.strata:
        part = rankings.of(stratum)
        runs = len(set(part.runs.tolist()))
        for position in sorted(set(part.position.tolist())):
            won = float(part.top[part.position == position].sum())
            out.append(PositionRow(stratum, int(position), won / runs))
    return out


def placebos(rankings: Rankings, lead: Floats, seed: int) -> Placebo:
    """Random halves of a group's names (of its runs, where names are not known)."""
    named = rankings.name is not None
    groups = rankings.groups
    found = []
    for k, group in enumerate(groups):
        side = np.asarray([g == group for g in rankings.group])
        units = np.asarray(rankings.name)[side] if named else rankings.runs[side]
        splits = max(1, STEADY // len(groups))
        found.append(halves(lead[side], units, splits=splits, seed=seed + k, least=LEAST // 2))
    return Placebo.of(f"random halves of the {'names' if named else 'runs'} of a group", found)
