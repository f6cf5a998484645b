"""What a mitigation did to each difference, on the same items before and after.

Before, the model leans about some attributes. The mitigation moves every name (everywhere and about
single attributes) and every question by amounts of their own, but no group; or, of vectors, every
word, but no set of words.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome
from benchmarks.calibrated.association import DIMENSIONS, SETS, words
from benchmarks.calibrated.underspecified import ABOUT, ATTRIBUTES, NAME, REST, asked, met

from evenhand.mitigations.changes import Followed, decided
from evenhand.mitigations.vectors.fit import paired_changes
from evenhand.probes.association.score import table_of
from evenhand.probes.underspecified import leans
from evenhand.words.lexicons import WordSets

COVERS = ("evenhand.mitigations.changes", "evenhand.mitigations.vectors.fit")
PLANTED = 0.1
"""Standard deviation of leans that are there before and after."""


def leaning(size: int, how: str) -> Path:
    first, second = met(size, how)
    groups = np.repeat([0, 1], size)

    def scores(rng: np.random.Generator) -> np.ndarray:
        liked = rng.normal(0, NAME, (2 * size, 1, 1))
        liked = liked + rng.normal(0, ABOUT, (2 * size, ATTRIBUTES, 1))
        lean = liked[first] - liked[second]
        return np.asarray(lean + rng.normal(0, REST, lean.shape))

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        before = scores(rng) + rng.normal(0, PLANTED, (1, ATTRIBUTES, 1))
        moved = scores(rng) / 2
        moved[:, 0] += effect * ATTRIBUTES / (ATTRIBUTES - 1)
        names, old = asked(first, second, before, groups)
        links = [old, *(asked(first, second, x, groups)[1] for x in (before + moved, moved))]
        rows = [leans.leanings(names, part) for part in links]
        tests = [
            Followed(str(k), "underspecified", str(k), *(r.found for r in row))
            for k, row in enumerate(zip(*rows))
        ]
        made = decided(tests, 0.05, (), ())
        truth = np.full(ATTRIBUTES + 1, -effect / (ATTRIBUTES - 1))
        truth[[0, -1]] = effect, effect / (ATTRIBUTES - 1)
        return outcome([t.change for t in made], truth, np.asarray([t.q for t in made]))

    names = f"{size} disjoint pairs" if how == "pairs" else f"{size} x {size} names, {how}"
    return Path(f"mitigate, change of contrasts, {names}", draw)


def of_vectors(size: int, tests: int = 4) -> Path:
    """Target words that move; no effect is called detectable there."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        sets, names, rows = [], [], []
        for number in range(tests):
            made = words(rng, (size,) * 4)
            lists = {k: tuple(f"{number}{k}{i}" for i in range(size)) for k in SETS}
            sets.append(WordSets(f"t{number}", **lists))
            names += [w for k in SETS for w in lists[k]]
            rows += [made[k] for k in SETS]
        before = np.concatenate(rows)
        targets = np.asarray([name[1] in "xy" for name in names])[:, None]
        # Small moves: large ones in all directions would lower every cosine.
        after = before + targets * rng.normal(0, 0.1, (len(names), DIMENSIONS))
        how: Any = SimpleNamespace(tests=sets, seed=0)
        found = paired_changes(table_of(names, before), table_of(names, after), how)
        p, q, low, high = (np.asarray([r[k] for r in found]) for k in ("p", "q", "low", "high"))
        return Outcome(p, q, low, high, np.zeros(tests), np.nan)

    return Path(f"mitigate, change of associations, {size} v {size} target words", draw)


PATHS = [leaning(40, "pairs"), leaning(20, "all meet"), of_vectors(8), of_vectors(25)]
