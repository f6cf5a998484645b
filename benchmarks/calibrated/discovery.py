"""Discovery: words of wrong answers, over names and situations, beyond the typical word."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.discovery.word_tests import corrected, pair_rows

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
        made = corrected(pair_rows(rates, np.arange(2 * names) < names), 0.05)
        kept = [row for row in made if row.p == row.p]
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
        return outcome([pair_rows(rates, np.arange(2 * names) < names)[-1]], [effect])

    return Path(f"discovery, typical word, {names} v {names} names, {situations} situations", draw)


PATHS = [
    words(10, 8, 12, 1.0), words(25, 12, 30, 0.6), words(25, 21, 60, 0.6), typical(25, 12),
]  # fmt: skip
