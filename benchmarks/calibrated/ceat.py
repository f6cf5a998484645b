"""Words in context: a word's vector differs from context to context."""

from __future__ import annotations

from functools import partial

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome, smooth
from benchmarks.calibrated.association import DIMENSIONS, SETS, STEPS, Floats, unless, words

from evenhand.compare.rows import judge
from evenhand.probes.ceat import METRIC, Ceat, score_test
from evenhand.probes.shared.word_tests import word_test
from evenhand.words.lexicons import WordSets

COVERS = ("evenhand.probes.ceat",)
SIZES, CONTEXTS, TESTS = (8, 8, 8, 8), 6, 4


def vectors_of(
    rng: np.random.Generator, number: int, made: dict[str, Floats]
) -> tuple[WordSets, dict[str, list[Floats]]]:
    """Vectors of the words in their contexts."""
    lists = {k: tuple(f"{number}{k}{i}" for i in range(len(v))) for k, v in made.items()}
    shape = (CONTEXTS, DIMENSIONS)
    rows = {
        word: list(row + rng.normal(0, 0.7, shape))
        for k in SETS
        for word, row in zip(lists[k], made[k], strict=True)
    }
    return WordSets(f"t{number}", **lists), rows


def sizes_of(rng: np.random.Generator) -> Floats:
    """Combined effect sizes of pushes of `STEPS`, on average."""
    out = [
        np.mean([score_test(*vectors_of(rng, 0, words(rng, SIZES, push)), draws=10).value
                 for _ in range(40)])
        for push in STEPS
    ]  # fmt: skip
    return smooth(STEPS, np.asarray(out))


KNOWN: list[Floats] = []


def draw(rng: np.random.Generator, effect: float) -> Outcome:
    push = 0.0
    if effect:
        if not KNOWN:
            KNOWN.append(sizes_of(np.random.default_rng(1)))
        push = float(np.interp(effect, KNOWN[0], STEPS))
    sets = [words(rng, SIZES, push), *(words(rng, SIZES) for _ in range(TESTS - 1))]
    made = [vectors_of(rng, number, one) for number, one in enumerate(sets)]
    scores = [partial(score_test, test, vectors, draws=40) for test, vectors in made]
    rows = judge(word_test(test, METRIC, score) for (test, _), score in zip(made, scores))
    found = [Ceat().finding(row) for row in rows]
    return outcome(found, unless(effect, TESTS), np.asarray([row.q for row in rows]))


PATHS = [Path(f"ceat, 8 v 8 by 8 v 8 words in {CONTEXTS} contexts", draw)]
