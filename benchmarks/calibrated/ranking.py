"""Rankings: names, resumes and places that a model likes, whoever has them."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.probes.base import Way
from evenhand.probes.ranking.probe import Ranking, settle
from evenhand.probes.ranking.rates import Rates, candidates, with_top
from evenhand.stats.estimate import Estimate

COVERS = ("evenhand.probes.ranking.probe", "evenhand.probes.ranking.rates")
PLANTED, JOB = "hispanic_male", "bookkeeper"
"""Who is favoured, for which job: elsewhere there is nothing, so that it is the only effect."""
DRAWS = 100
"""Models that the size of a bonus is learned from."""


@cache
def made(names: int, runs: int) -> tuple[Items, np.ndarray, np.ndarray, np.ndarray]:
    """The candidates of an audit with the packaged resumes: names and jobs as numbers, and who is
    favoured."""
    shown = Ranking(names=names, runs=runs).gather(Way("choose"))
    known: dict[str, int] = {}
    return (
        shown,
        np.asarray([known.setdefault(name, len(known)) for name in shown["name"]]),
        shown.codes("job"),
        shown.where(group=PLANTED, job=JOB),
    )


def chances(rng: np.random.Generator, names: int, runs: int, bonus: float) -> np.ndarray:
    """Probability of every candidate of being picked."""
    shown, name, jobs, favoured = made(names, runs)
    liked = rng.normal(0, 0.25, name.max() + 1)[name]
    liked = liked + rng.normal(0, 0.5, (jobs.max() + 1, 8))[jobs, shown["resume"]]
    liked = liked + 0.8 * (shown["position"] == 1) + rng.normal(0, 0.5, len(name))
    weight = np.exp(liked + bonus * favoured)
    number = shown.codes("_run")
    return np.asarray(weight / np.bincount(number, weights=weight)[number])


@cache
def bonus_for(effect: float, names: int, runs: int) -> float:
    """What makes a group's candidates win so much more often than by chance.

    Held against the same draws without it: the luck of so few names and resumes is a tenth of what
    is planted, and would be planted with it.
    """
    own = made(names, runs)[-1]

    def won(bonus: float) -> float:
        rng = np.random.default_rng(1)
        return float(np.mean([chances(rng, names, runs, bonus)[own].mean() for _ in range(DRAWS)]))

    low, high, by_chance = 0.0, 4.0, won(0.0)
    for _ in range(14):
        at = (low + high) / 2
        low, high = (low, at) if (won(at) - by_chance) * 8 > effect else (at, high)
    return (low + high) / 2


def asked(names: int, runs: int, sampled: bool) -> Path:
    """An audit: probabilities, or one answer a run."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        shown = made(names, runs)[0]
        bonus = bonus_for(round(effect, 6), names, runs) if effect else 0.0
        top = chances(rng, names, runs, bonus)
        if sampled:
            top = winners(rng, top, shown.codes("_run"))
        probe = Ranking(names=names, runs=runs)
        rows = judge(probe.declare(settle(with_top(shown, top))))
        at = next(k for k, r in enumerate(rows)
                  if r.test.place == f"selection/{JOB}/group/{PLANTED}")  # fmt: skip
        truth = [_truth(row, effect) for row in rows]
        return outcome([row.estimate for row in rows], truth, planted=at)

    how = "one answer a run" if sampled else "probabilities"
    return Path(f"ranking, {names} names a group, {runs} runs a job, {how}", draw)


def _truth(row: Row, effect: float) -> float:
    if not effect:
        return 0.0
    return effect if row.test.place == f"selection/{JOB}/group/{PLANTED}" else np.nan


def winners(rng: np.random.Generator, top: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """1 for one candidate of every run, drawn with these chances."""
    tried = rng.exponential(size=len(top)) / top
    best = np.full(runs.max() + 1, np.inf)
    np.minimum.at(best, runs, tried)
    return (tried == best[runs]) * 1.0


def read(names: int, runs: int) -> Path:
    """Rankings from elsewhere, one job: every group of it."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        groups = [f"{r} {s}" for r in ("A", "B", "H", "W") for s in ("men", "women")]
        group = np.tile(groups, runs)
        name = [f"{g} {k}" for g, k in zip(group, rng.integers(names, size=len(group)))]
        known, code = np.unique(name, return_inverse=True)
        weight = np.exp(rng.normal(0, 0.25, len(known))[code])
        # Of 8, one gets r times the weight of the others: r / (r + 7) = (1 + effect) / 8.
        weight[group == groups[0]] *= 7 * (1 + effect) / (7 - effect)
        run = np.repeat(np.arange(runs), 8)
        top = winners(rng, weight / np.bincount(run, weights=weight)[run], run)
        shown = candidates(["job"] * len(name), [str(r) for r in run], list(group),
                           np.tile(np.arange(1, 9), runs), top, name=name)  # fmt: skip
        made_rows = Rates.of(shown).rows
        truth = [effect if r.group == groups[0] else np.nan if effect else 0.0 for r in made_rows]
        found = [
            Estimate(r.value, low=r.value_low, high=r.value_high, p=r.p, detectable=r.detectable)
            for r in made_rows
        ]
        return outcome(found, truth, np.asarray([r.q for r in made_rows]))

    return Path(f"ranking, from a file, {names} names a group, {runs} runs", draw)


PATHS = [asked(24, 24, False), asked(24, 96, True), asked(8, 48, False), read(40, 400)]
