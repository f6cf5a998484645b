"""Mitigations that do nothing: settings picked among 66, and changes of leans.

A no-op moves terms, prompts and names by effects of their own and no group, so that in truth the
gap is what it was. Settings are chosen on one half of the pairs and judged on the other, by the
product's own choice (`pick`) and estimate (`fall`); leans are followed by the difference of items.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa
from benchmarks.calibrated import Floats, Outcome, Path, outcome
from benchmarks.calibrated.association import SETS, words

from evenhand.audit.comparison.paired import difference
from evenhand.mitigations.changes import PairedChange, decided
from evenhand.mitigations.head.fit import Pairs, held_out
from evenhand.mitigations.head.tradeoff import ALPHAS, Point, fall, pick
from evenhand.mitigations.vectors.fit import cosines, follow
from evenhand.probes.association.score import table_of
from evenhand.probes.underspecified.leans import estimates
from evenhand.words.lexicons import WordSets

COVERS = ("evenhand.mitigations.changes",)
ROUNDS = (1, 2, 4, 8, 16, 32)
SETTINGS = [(r, a) for r in ROUNDS for a in (*ALPHAS[1:], "learned")]
ATTRIBUTES = 8
PUSHES = np.linspace(0.0, 3.0, 7)


def moved(rng: np.random.Generator, pairs: Pairs, settings: int) -> np.ndarray:
    """What settings do to the log gap of each pair: nothing on average."""
    return np.asarray(
        rng.normal(0, 0.15, (settings, 100))[:, pairs.terms]
        + rng.normal(0, 0.15, (settings, 100))[:, pairs.prompts]
        + rng.normal(0, 0.1, (settings, len(pairs.terms)))
    )


def picked(settings: int) -> Path:
    """Choose the setting with the smallest gap, then judge it on other pairs."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        choosing, judging = held_out("gender", int(rng.integers(1 << 30)))
        found = []
        for half in (choosing, judging):
            own = rng.normal(0, 0.3, 100)[half.terms] + rng.normal(0, 0.2, 100)[half.prompts]
            before = 0.1 * np.exp(own + rng.normal(0, 0.2, len(half.terms)))
            after = before * (1 - effect) * np.exp(moved(rng, half, settings))
            found.append((before, after))
        points = [
            Point("a-pairs", r, r, a, "probability", float(h2.mean()), 0.0, 0.0, 10.0, 0.0, 0.0,
                  0.0, 1.0)
            for (r, a), h2 in zip(SETTINGS, found[0][1])
        ]  # fmt: skip
        best = points.index(pick(points, 0.02))
        before, after = found[1]
        return outcome([fall(before, after[best], judging.terms, judging.prompts)], [effect])

    return Path(f"mitigate, fall of the gap, best of {settings} settings", draw)


def leans(pairs: int) -> Path:
    """Leans before and after, with three true ones that a no-op leaves where they are."""
    grid = np.indices((pairs, ATTRIBUTES)).reshape(2, -1)
    terms = [f"{'ab'[k // pairs]}{k}" for k in range(2 * pairs)]
    groups: Mapping[str, str] = {t: t[0] for t in terms}
    named = {
        "first": [terms[i] for i in grid[0]], "second": [terms[i + pairs] for i in grid[0]],
        "template": ["t"] * grid.shape[1], "attribute": [str(a) for a in grid[1]],
    }  # fmt: skip

    def table(liked: np.ndarray) -> pa.Table:
        lean = liked[grid[0], grid[1]] - liked[grid[0] + pairs, grid[1]]
        return pa.table({**named, **{
            f"{who}_order{o}_{q}": 0.5 + sign * lean / 2
            for who, sign in (("first", 1), ("second", -1))
            for o in (0, 1) for q in ("asked", "negated")
        }})  # fmt: skip

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        shape = (2 * pairs, ATTRIBUTES)
        was = rng.normal(0, 0.1, (shape[0], 1)) + rng.normal(0, 0.05, shape)
        was[:pairs, :3] += 0.1
        now = was + rng.normal(0, 0.05, (shape[0], 1)) + rng.normal(0, 0.05, shape)
        # A change of this size of the first contrast: the average attribute moves along.
        now[:pairs, 0] += effect * ATTRIBUTES / (ATTRIBUTES - 1)
        both = table(was), table(now)
        found = [estimates(t, groups) for t in (*both, difference(both))]
        tests = [PairedChange(k, "u", k, *(f[k] for f in found)) for k in found[0]]
        made = decided(tests, 0.05, (), ())
        truth = np.full(len(made), -effect / (ATTRIBUTES - 1))
        truth[[0, -1]] = effect, effect / (ATTRIBUTES - 1)
        q = np.asarray([t.q for t in made])
        return outcome([t.change for t in made], truth, q)

    return Path(f"mitigate, change of leans, {pairs} disjoint pairs", draw)


def vectors(size: int, tests: int) -> Path:
    """Vectors before and after: every word moves, no set of words does.

    Planted: the words of x move towards those of a, as an axis that sets them apart does. How far
    that changes the contrast of mean cosines is known from many words.
    """
    move = 0.5

    def made(
        rng: np.random.Generator, number: int, size: int, push: float
    ) -> tuple[WordSets, list[str], Floats, Floats]:
        sets = words(rng, (size,) * 4)
        lists = {k: tuple(f"{number}{k}{i}" for i in range(size)) for k in SETS}
        before = np.concatenate([sets[k] for k in SETS])
        after = before + rng.normal(0, move, before.shape)
        after[:size, 2] += push
        names = [w for k in SETS for w in lists[k]]
        return WordSets(f"t{number}", **lists), names, before, after

    def changed(rng: np.random.Generator, push: float, size: int, tests: int) -> list[PairedChange]:
        found = []
        for number in range(tests):
            sets, names, one, two = made(rng, number, size, push if number == 0 else 0.0)
            tables = cosines(table_of(names, one), table_of(names, two), sets)
            found.append(follow(sets.name, *tables))
        return decided(found, 0.05, (), ())

    @cache
    def sizes() -> Floats:
        """The change that a push of 1 makes, with more words than matter."""
        rng = np.random.default_rng(1)
        return np.asarray([changed(rng, push, 400, 1)[0].change.value for push in PUSHES])

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        push = float(np.interp(effect, sizes(), PUSHES)) if effect else 0.0
        rows = changed(rng, push, size, tests)
        truth = np.zeros(tests)
        truth[0] = effect
        return outcome([t.change for t in rows], truth, np.asarray([t.q for t in rows]))

    return Path(f"mitigate, change of associations, {size} v {size} by {size} v {size} words", draw)


PATHS = [picked(66), picked(1), leans(20), vectors(8, 1), vectors(20, 3)]
