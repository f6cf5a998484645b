"""Implicit associations: terms, words and topics are liked for their own sake, groups are not."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.implicit.probe import SIDES, TESTS, Implicit

COVERS = ("evenhand.probes.implicit.probe",)


def answered(
    rng: np.random.Generator, gaps: np.ndarray, test: str, words: int, pairs: int
) -> Items:
    """Stereotypes with these gaps: words go more to one group by themselves, terms are liked, and
    some pairs of terms (from five on, of which they are a sample) and topics lean."""
    k = len(gaps)
    shape = (k, pairs, 2, words)
    share = 0.5 + rng.normal(0, 0.1, (k, pairs, 1, 1)) + rng.normal(0, 0.06, shape)
    share = share + rng.normal(0, 0.05, (k, 1, 1 if test == TESTS[1] else 2, words))
    signs = np.asarray([0.5, -0.5])[:, None]
    share = share + signs * gaps[:, None, None, None]
    if pairs >= 5:
        share = share + signs * rng.normal(0, 0.06, (k, pairs, 1, 1))
    if test == TESTS[1]:
        share = share + signs * rng.normal(0, 0.06, (k, 1, 1, words))
    at = np.indices(shape).reshape(4, -1)
    word = [f"{SIDES[s]}{w}" for s, w in zip(at[2], at[3])]
    topic = [f"t{w}" for w in at[3]] if test == TESTS[1] else word
    return Items(
        {
            "share": share.ravel(),
            "stereotype": [str(s) for s in at[0]],
            "test": [test] * share.size,
            "side": [SIDES[s] for s in at[2]],
            "word": word,
            "topic": topic,
            "pair": [f"{s} {p}" for s, p in zip(at[0], at[1])],
        }
    )


def stereotypes(test: str, words: int, pairs: int) -> Path:
    """Five stereotypes that the model does not share; one that it does."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        gaps = np.asarray([effect, 0.0, 0.0, 0.0, 0.0])
        rows = judge(Implicit().declare(answered(rng, gaps, test, words, pairs)))
        return outcome([row.estimate for row in rows], gaps, np.asarray([row.q for row in rows]))

    return Path(f"implicit, {test}, {words} + {words} words, {pairs} pairs of terms", draw)


PATHS = [stereotypes(TESTS[0], 8, 8), stereotypes(TESTS[0], 8, 1), stereotypes(TESTS[1], 8, 8)]
