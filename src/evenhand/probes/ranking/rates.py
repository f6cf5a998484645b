"""Selection rates, ratios to the best group, what chance gives, and the verdict about each group.

A group's selection rate is how often its candidates come first. Its ratio to the best group's is
the number of the four-fifths rule; the best of eight groups is partly the luckiest, so ratios lie
below 1 for a ranker that does not look at groups too. Three things stand beside each:

    interval   with the truly best group, whichever it is: log-ratios to every group at once
               (Dunnett's constant), as in multiple comparisons with the best (Hsu 1984)
    floor      of rankers that do not look at groups, 5 of 100 have a smallest ratio below it
    verdict    of the rate beside the share that falls to the group by chance, rate / share - 1:
               names were sampled (or runs, where names are not known), t over them

How much names matter by themselves is the variance of what a name adds, whoever bears it. Leads
(rate / share - 1) of a run add up to nothing, so with C for "less the mean of the run", G for
groups and Z for names (which are nested in groups),

    C y = C G b + C Z u + C e,     u ~ (0, v I),   e ~ (0, w I)

and v follows from two moments: the sum of squares, and that of names' sums over their numbers. All
matrices are as large as the number of names, however many runs there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.compare.items import Floats, Integers, Items, Mask
from evenhand.probes.ranking.asking import Run
from evenhand.stats.clustered_means import clustered_mean, with_q
from evenhand.stats.estimate import NAN, Estimate, detectable_t, estimate, settled

ODDS = 6
"""How far odds are moved, as logits: 400 times and 1 / 400."""
DRAWS = 20_000
"""Simulated rankers without a preference behind a floor."""
QUANTILE = 0.05
FIFTHS = 0.8
MOST = 1_500
"""Names that the variance is estimated from, at most."""
REPEATED = 1.25
"""Appearances of a name, on average, from which on names can be told from runs."""


def coded(values: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    """Return distinct values in their order, and the number of each row's.

    >>> coded(["b", "a", "b"])[1].tolist()
    [0, 1, 0]
    """
    known = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return tuple(known), np.asarray([known[v] for v in values], np.int64)


def candidates(
    job: Sequence[str],
    run: Sequence[str],
    group: Sequence[str],
    position: npt.ArrayLike,
    top: Floats,
    *,
    name: Sequence[str] | None = None,
    axes: Mapping[str, Mapping[str, str]] | None = None,
    **columns: Sequence[Any],
) -> Items:
    """Return everybody who was shown as items, a row each.

    Args:
        job, run: runs are counted within a job (a stratum of a file).
        position: 1 for the candidate shown first.
        top: 1 for the one ranked first, or the probability of being it; 0 for the others.
        name: what the candidate was called, if it is known: names are then what was sampled.
        axes: values of each group by axis ("sex", "race"), if they are known.
        columns: further ones.

    The column `share` is what falls to each candidate if groups do not matter: 1 / candidates of
    the run. `lead` is top / share - 1; `_lead` the same, without what places and resumes add.
    """
    runs = coded([f"{j}\t{r}" for j, r in zip(job, run)])[1]
    share = 1.0 / np.bincount(runs)[runs]
    items = Items(
        {
            "job": job,
            "run": run,
            "position": np.asarray(position, np.int64),
            "name": [""] * len(runs) if name is None else name,
            "group": group,
            **columns,
            "share": share,
            "_run": runs,
        },
        about=About(axes or {}),
    )
    return with_top(items, top)


def with_top(items: Items, top: Floats) -> Items:
    """Return candidates with who is ranked first; NaN if nobody of a run is."""
    lead = top / items["share"] - 1
    return items.having({"lead": lead, "_top": top, "_lead": lead})


@dataclass(frozen=True)
class About:
    """What is known about candidates beside the columns.

    Attributes:
        axes: values of each group by axis.
        runs: what is asked of a model.
        rates: of a file, since its contract has them.
    """

    axes: Mapping[str, Mapping[str, str]]
    runs: Sequence[Run] = ()
    rates: Rates | None = None


def jobs_of(items: Items) -> tuple[str, ...]:
    """Return the jobs in their order."""
    return tuple(dict.fromkeys(items["job"].tolist()))


def are_named(items: Items) -> bool:
    """Return whether names are known, and so the sample."""
    return set(items.levels("name")) != {""}


@dataclass(frozen=True)
class Liked:
    """Names as numbers, and what varies.

    Attributes:
        codes: the name of every row; None where they are unknown or come once each.
        variance: of what a name adds to its own lead (v above), at least 0.
        rest: variance of a row beside that (w above).
        noise: half the variance of the estimate of v.
    """

    codes: Integers | None = None
    variance: float = 0.0
    rest: float = 0.0
    noise: float = 0.0

    @classmethod
    def of(cls, rows: Items, lead: Floats) -> Liked:
        """Estimate them from the leads (top / share - 1) of all rows.

        >>> groups, names = ["a", "b"] * 40, [f"{k % 4}" for k in range(80)]
        >>> rows = candidates(["j"] * 80, [str(k // 2) for k in range(80)], groups,
        ...                   np.tile([1, 2], 40), np.zeros(80), name=names)
        >>> Liked.of(rows, np.tile([1.0, -1, -1, 1], 20)).rest      # names decide it all
        0.0
        """
        names, codes = coded([f"{g}\t{n}" for g, n in zip(rows["group"], rows["name"])])
        known = are_named(rows) and len(codes) >= REPEATED * len(names)
        if not known:
            names, codes = coded(rows["group"].tolist())
        kept = np.flatnonzero(codes < MOST)
        groups = coded([name.split("\t")[0] for name in names[:MOST]])[1]
        runs = np.unique(rows.codes("_run")[kept], return_inverse=True)[1]
        moments = _moments(lead[kept], codes[kept], runs, groups)
        return cls(codes, *moments) if known else cls(None, 0.0, moments[1])


def centred(values: Floats, runs: Integers) -> Floats:
    """Less the mean of the run."""
    return np.asarray(values - (np.bincount(runs, weights=values) / np.bincount(runs))[runs])


def _moments(
    lead: Floats, name: Integers, run: Integers, group: Integers
) -> tuple[float, float, float]:
    """v, w, and half the variance of the estimate of v (normal)."""
    count, size = np.bincount(name).astype(float), np.bincount(run).astype(float)
    met = np.zeros((len(size), len(count)))
    np.add.at(met, (run, name), 1.0)
    inner = np.diag(count) - (met / size[:, None]).T @ met
    nested = np.eye(group.max() + 1)[group]
    inside = nested.T @ inner @ nested
    back = np.linalg.pinv(inside)
    s = inner - inner @ nested @ back @ nested.T @ inner
    y = centred(lead, run)
    sums = np.bincount(name, weights=y)
    means = back @ (nested.T @ sums)
    squares = float(y @ y - (nested.T @ sums) @ means)
    sums = sums - inner @ nested @ means
    free = len(lead) - len(size) - np.linalg.matrix_rank(inside)
    t = s / count[:, None]
    ts, tss = np.trace(t), float((t * s.T).sum())
    known = np.asarray([[np.trace(s), free], [tss, ts]])
    if abs(np.linalg.det(known)) < 1e-9 * abs(known).max() ** 2:
        return 0.0, max(0.0, squares) / max(1, free), 0.0
    row = np.linalg.inv(known)[0]
    rest = np.asarray([squares, float((sums**2 / count).sum())])
    v, w = np.maximum(np.linalg.inv(known) @ rest, 0.0)
    tt, t_s = t @ t, t @ s
    one = v * v * (s * s.T).sum() + 2 * v * w * np.trace(s) + w * w * free
    both = v * v * (t_s * s.T).sum() + 2 * v * w * tss + w * w * ts
    two = v * v * (t_s * t_s.T).sum() + 2 * v * w * (tt * s.T).sum() + w * w * (t * t.T).sum()
    return float(v), float(w), float(row @ np.asarray([[one, both], [both, two]]) @ row)


def advantage(
    rows: Items,
    side: Mask,
    *,
    lead: Floats,
    liked: Liked,
    family: int = 1,
    rate: float = 0.05,
) -> Estimate:
    """Estimate how much more often than by chance the candidates of a side come first.

    Two things vary: who wins a run, and which names were drawn, on this side and among its rivals.
    With x for the rows of the side, each 1 / their number, less the mean of its run,

        variance = V_runs + v (sum over names of (sum of x)^2 - sum of x^2)

    V_runs is clustered by run (CR2), and at least what rows of all groups vary: few wins vary
    little by chance. It holds names too, as if drawn anew each time; v is the variance of what a
    name adds (`liked`), which comes back with the name.

    Args:
        side: which rows are of the side.
        lead: top / share - 1 of every row.
        liked: how much names matter.

    >>> runs = [str(k // 2) for k in range(80)]
    >>> won = (np.arange(80) % 2 == 0) ^ (np.arange(80) % 20 == 0) ^ (np.arange(80) % 20 == 1)
    >>> rows = candidates(["all"] * 80, runs, ["a", "b"] * 40, [1, 2] * 40, won * 1.0)
    >>> lead = rows["lead"]
    >>> e = advantage(rows, rows.where(group="a"), lead=lead, liked=Liked.of(rows, lead))
    >>> round(e.value, 2), e.p < 0.001, e.units
    (0.8, True, 40)
    """
    if not side.any() or side.all():
        why = "no candidate of this group was shown" if not side.any() else "there is one group"
        return Estimate(NAN, reason=why)
    number, shares, codes = rows.codes("_run"), rows["share"][side], liked.codes
    bounds = (-1.0, 1 / float(shares.mean()) - 1)
    how: dict[str, Any] = {"family": family, "rate": rate}
    runs = clustered_mean(lead[side], number[side], bounds=bounds, **how)
    x = centred(side / side.sum(), number)
    back = 0.0 if codes is None else float((np.bincount(codes, weights=x) ** 2).sum() - x @ x)
    of_all = (liked.rest + liked.variance) * float(x @ x)
    of_names = liked.variance * max(0.0, back)
    over_runs = max(runs.error**2, of_all)
    variance = over_runs + of_names
    if not variance > 0 or not runs.error >= 0:
        drawn = number if codes is None else codes
        return clustered_mean(lead[side], drawn[side], bounds=bounds, **how)
    freedom = max(1.0, variance**2 / (over_runs**2 / runs.freedom + back**2 * liked.noise))
    units = runs.n_clusters if codes is None else len(np.unique(codes[side]))
    both = estimate(runs.value, math.sqrt(variance), freedom, units=units, **how)
    low, high = (float(np.clip(end, *bounds)) for end in (both.low, both.high))
    by_run = float(shares.sum()) / len(np.unique(number[side]))
    spread = Spread(of_all or over_runs, of_names, by_run, _picked(rows, side))
    seen = spread.detectable(freedom, rate / max(1, family))
    return replace(both, low=low, high=high, detectable=seen)


def _picked(rows: Items, side: Mask) -> Floats | None:
    """Return the probability of each run that its pick is of the side; None of single answers."""
    top, runs = rows["_top"], rows.codes("_run")
    if np.isin(top, (0.0, 1.0)).all():
        return None
    won = np.bincount(runs, weights=top * side)
    return np.asarray(won[np.bincount(runs, weights=side) > 0], np.float64)


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


def _compositions(shown: Floats) -> Iterator[tuple[Floats, Mask]]:
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


def tallies(rows: Items) -> tuple[Floats, Floats]:
    """Count how often each group came first and was shown, by run [runs, groups]."""
    runs, groups = rows.codes("_run"), rows.codes("group")
    won, shown = np.zeros((2, rows.count("_run"), rows.count("group")))
    np.add.at(won, (runs, groups), rows["_top"])
    np.add.at(shown, (runs, groups), 1.0)
    return won, shown


@dataclass(frozen=True)
class Rates:
    """Every group of every job, q corrected over all of them; and the floors by job."""

    rows: Sequence[RateRow]
    floors: Mapping[str, Floors]

    @classmethod
    def of(cls, items: Items, *, seed: int = 0, rate: float = 0.05) -> Rates:
        parts = {job: items.at(items.where(job=job)) for job in jobs_of(items)}
        family = sum(part.count("group") for part in parts.values())
        known: dict[str, Floors] = {}
        rows: list[RateRow] = []
        for job, part in parts.items():
            won, shown = tallies(part)
            known[job] = floors(won, shown, seed)
            rows += _rates(job, part, won, shown, known[job], family, rate)
        return cls(with_q(rows, [row.p for row in rows]), known)


def _rates(
    job: str, part: Items, won: Floats, shown: Floats, floor: Floors, family: int, rate: float
) -> list[RateRow]:
    """Return the groups of one job."""
    sides = [part.codes("group") == k for k in range(won.shape[1])]
    lead = part["lead"]
    liked, runs = Liked.of(part, lead), part.codes("_run")
    estimates = [
        advantage(part, side, lead=lead, liked=liked, family=family, rate=rate) for side in sides
    ]
    over_runs = (clustered_mean(lead[side], runs[side]).error for side in sides)
    wider = [
        max(1.0, (e.error / alone) ** 2) if e.error > 0 and alone > 0 else 1.0
        for e, alone in zip(estimates, over_runs)
    ]
    low, high = ratio_intervals(won, shown, np.asarray(wider))
    n, top = shown.sum(axis=0), won.sum(axis=0)
    best = float((top / n).max())
    ratios = [float(each) / best if best > 0 else NAN for each in top / n]
    return [
        RateRow(
            stratum=job,
            group=group,
            n=int(n[k]),
            top=int(top[k]) if float(top[k]).is_integer() else float(top[k]),
            rate=float(top[k] / n[k]),
            ratio=ratios[k],
            low=float(low[k]),
            high=float(high[k]),
            floor=floor.smallest,
            floor_each=float(floor.each[k]),
            chance=floor.chance(ratios[k]),
            below_floor=bool(ratios[k] < floor.smallest),
            share=float(part["share"][sides[k]].mean()),
            value=e.value,
            value_low=e.low,
            value_high=e.high,
            p=e.p,
            detectable=e.detectable,
            n_names=e.units if are_named(part) else None,
            reason=e.reason or None,
        )
        for k, (group, e) in enumerate(zip(part.levels("group"), estimates))
    ]


@dataclass(frozen=True)
class PositionRow:
    """How often the candidate shown at this place came first."""

    stratum: str
    position: int
    rate: float


def position_rows(items: Items) -> list[PositionRow]:
    """Return by job and position the share of runs whose winner was shown there."""
    out = []
    for job in jobs_of(items):
        part = items.at(items.where(job=job))
        for position in np.unique(part["position"]):
            won = float(part["_top"][part["position"] == position].sum())
            out.append(PositionRow(job, int(position), won / part.count("_run")))
    return out


def first_place(rows: Sequence[PositionRow]) -> float:
    """Return how often the candidate shown first came first, NaN if nobody was."""
    return float(np.mean([r.rate for r in rows if r.position == 1] or [np.nan]))
