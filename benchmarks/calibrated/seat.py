"""Sentence associations, words known: the sentences of a word are alike, templates have effects."""

from __future__ import annotations

from functools import partial

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome
from benchmarks.calibrated.association import DIMENSIONS, SETS, TESTS, Floats, needed, unless, words

from evenhand.compare.rows import judge
from evenhand.probes.seat import Seat, SeatTest, score_test
from evenhand.probes.shared.word_tests import word_test

COVERS = ("evenhand.probes.shared.word_tests",)
SIZES, SENTENCES = (8, 8, 8, 8), 4


def test_of(
    rng: np.random.Generator, number: int, made: dict[str, Floats]
) -> tuple[SeatTest, dict[str, Floats]]:
    """Sentences of the words, each near its word and its template."""
    templates = rng.normal(0, 0.5, (SENTENCES, DIMENSIONS))
    texts, units, vectors = {}, {}, {}
    for key in SETS:
        names = [f"{number}{key}{i}" for i in range(len(made[key]))]
        texts[key] = tuple(f"{n} {k}." for n in names for k in range(SENTENCES))
        units[key] = tuple(n for n in names for _ in range(SENTENCES))
        rows = made[key][:, None] + templates + rng.normal(0, 0.3, (len(names), *templates.shape))
        vectors |= dict(zip(texts[key], rows.reshape(-1, DIMENSIONS), strict=True))
    return SeatTest(f"t{number}", **texts, units=units), vectors


def draw(rng: np.random.Generator, effect: float) -> Outcome:
    sets = [words(rng, SIZES, needed(SIZES, effect))]
    sets += [words(rng, SIZES) for _ in range(TESTS - 1)]
    tests = [test_of(rng, number, made) for number, made in enumerate(sets)]
    rows = judge(
        word_test(test, "effect_size", partial(score_test, test, vectors, samples=99))
        for test, vectors in tests
    )
    found = [Seat().finding(row) for row in rows]
    return outcome(found, unless(effect, TESTS), np.asarray([row.q for row in rows]))


PATHS = [Path(f"seat, 8 v 8 by 8 v 8 words of {SENTENCES} sentences", draw)]
