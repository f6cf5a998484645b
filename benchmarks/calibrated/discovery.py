"""Discovery: words of wrong answers, over names and situations, beyond the typical word.

A name is read more or less well, everywhere and in single situations; a situation does something
to all wrong answers with one group's names, and to single words of them; a name goes with single
words. None of it is of the group: other names and situations would lean as far the other way.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.rows import judge
from evenhand.probes.discovery import findings
from evenhand.probes.discovery.compare import word_changes
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.inference import Settings, compare, pair_verdicts
from evenhand.stats.multiple import benjamini_hochberg

COVERS = tuple(f"evenhand.probes.discovery.{name}" for name in ("findings", "inference", "compare"))

SHARED = (0.06, 0.05, 0.06)
"""What a name does to every word; the same in one situation; a situation to a group's names."""
OWN = (0.03, 0.07, 0.06)
"""What a name does to one word, a situation to one word of a group's names, and noise."""
FIRST = 8
"""Situations in which the word is offered in which a difference is planted."""


def fair(
    rng: np.random.Generator, names: int, situations: int, words: int, offered: float
) -> np.ndarray:
    """Success rates [names, situations, words]; each word is offered in some situations only."""
    n, c, w = 2 * names, situations, words
    side = np.repeat([0.5, -0.5], names)[:, None, None]
    rates = 0.3 + rng.normal(0, 0.1, (1, c, w))
    rates = rates + rng.normal(0, SHARED[0], (n, 1, 1)) + rng.normal(0, SHARED[1], (n, c, 1))
    rates = rates + side * rng.normal(0, SHARED[2], (1, c, 1))
    rates = rates + rng.normal(0, OWN[0], (n, 1, w)) + side * rng.normal(0, OWN[1], (1, c, w))
    rates = rates + rng.normal(0, OWN[2], (n, c, w))
    gone = rng.random((c, w)) > offered
    gone[:FIRST, 0] = False
    rates[:, gone] = np.nan
    return np.asarray(rates)


def words(names: int, situations: int, count: int, offered: float) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rates = fair(rng, names, situations, count, offered)
        rates[:names, :, 0] += effect
        verdicts = pair_verdicts(rates, np.arange(2 * names) < names)
        kept = [row for row in judge(v.test() for v in verdicts) if row.p == row.p]
        truth = np.zeros(len(kept))
        truth[0] = effect
        return outcome(kept, truth, np.asarray([row.q for row in kept]))

    often = "" if offered == 1 else f", each word in {offered:.0%} of them"
    return Path(
        f"discovery, {count} words, {names} v {names} names, {situations} situations{often}", draw
    )


def typical(names: int, situations: int) -> Path:
    """The difference of the typical word, alone."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rates = fair(rng, names, situations, 20, 1.0)
        rates[:names] += effect
        return outcome([pair_verdicts(rates, np.arange(2 * names) < names)[-1]], [effect])

    return Path(f"discovery, typical word, {names} v {names} names, {situations} situations", draw)


def changed(names: int, situations: int, count: int) -> Path:
    """Two runs of one suite: a change of the model moves names, situations and words a little."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        one = fair(rng, names, situations, count, 1.0)
        two = one + (fair(rng, names, situations, count, 1.0) - 0.3) / 2
        two[:names, :, 0] += effect
        made = word_changes(one, two, np.arange(2 * names) < names)
        truth = np.zeros(count)
        truth[0] = effect
        return outcome(made, truth, benjamini_hochberg([e.p for e in made]))

    return Path(f"discovery, changes between two runs, {names} v {names} names", draw)


def counted(rng: np.random.Generator, names: int, situations: int, words: int) -> WordCounts:
    """Wins of wrong answers whose words no situation moves for one group; names differ."""
    rate = 0.3 + rng.normal(0, 0.08, (2 * names, 1, 1)) + rng.normal(0, 0.05, (1, situations, 1))
    rate = rate + rng.normal(0, 0.06, (2 * names, 1, words)) + np.zeros((1, situations, 1))
    shown = np.full(rate.shape, 6.0)
    return WordCounts(
        ("a",) * names + ("b",) * names, tuple(map(str, range(2 * names))),
        tuple(map(str, range(situations))), tuple(map(str, range(words))), shown,
        rng.binomial(6, np.clip(rate, 0.02, 0.98)).astype(float), words,
    )  # fmt: skip


def published(names: int, clusters: bool) -> Path:
    """SODAPOP's own numbers, about these situations: d by re-labelled names, and clusters.

    No effect is called detectable there, so none is planted.
    """
    how = Settings(samples=999, restarts=20)

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        made = compare(counted(rng, names, 8, 12), "a", "b", how)
        none = np.full(1 if clusters else 12, np.nan)
        if clusters:
            row = findings.cluster_rows([made], [("a", "b")])[0]
            return Outcome(np.array([row["p"]]), np.array([row["q"]]), none, none, none, np.nan)
        p, q, low, high = (
            np.asarray([w[name] for w in made.words]) for name in ("p", "q", "d_low", "d_high")
        )
        return Outcome(p, q, low, high, np.zeros(12), np.nan)

    what = "clusters of names" if clusters else "d of these situations"
    return Path(f"discovery, {what}, {names} v {names} names", draw)


PATHS = [
    words(10, 8, 12, 1.0), words(25, 12, 30, 0.6), words(25, 21, 60, 0.6), typical(25, 12),
    changed(25, 12, 30), published(12, clusters=False), published(12, clusters=True),
]  # fmt: skip
