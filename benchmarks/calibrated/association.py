"""Associations of word vectors, over target words and attribute words.

Groups differ (x from y on one axis, a from b on two others), words scatter, and no axis on which x
and y differ is one on which a and b do: attributes that were drawn otherwise would lean as far the
other way. What is planted is the same for every word, as in all paths: what is called detectable is
a shift that leaves the spread of words as it is. So the third axis, on which it is planted, carries
the difference of a and b and no scatter. A difference that words have unevenly spreads them too and
is harder to find in small sets: with a scatter of 1.5 on that axis too, 62 to 64 of 100 instead of
80 are found with 8 to 24 words a set, 78 with 25 (alarms and coverage are the same).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
from benchmarks.calibrated import Outcome, Path, outcome, smooth

from evenhand.metrics.association import associations, unit_rows
from evenhand.probes.association.probe import Association
from evenhand.probes.association.score import associate, table_of
from evenhand.probes.shared.word_tests import SETS
from evenhand.words.lexicons import WordSets

COVERS = ("evenhand.probes.shared.word_tests",)
Floats = npt.NDArray[np.float64]
Sizes = tuple[int, int, int, int]
DIMENSIONS, TESTS = 30, 6
STEPS = np.linspace(0.0, 4.0, 13)


def words(rng: np.random.Generator, sizes: Sizes, push: float = 0.0) -> dict[str, Floats]:
    """Vectors of one test; with `push` x and y differ on an axis on which a and b do too."""
    sides = {"x": (2.0, 0.0, push), "y": (-2.0, 0.0, -push), "a": (0.0, 2.0, 2.0),
             "b": (0.0, -2.0, -2.0)}  # fmt: skip
    made = {}
    for key, n in zip(SETS, sizes, strict=True):
        made[key] = rng.normal(0, 1, (n, DIMENSIONS))
        made[key][:, :3] = made[key][:, :3] * (1.5, 1.5, 0.0) + sides[key]
    return made


@cache
def pushes(sizes: Sizes, of: Callable[..., dict[str, Floats]] = words) -> Floats:
    """Effect sizes that pushes of `STEPS` have on average."""
    rng, share = np.random.default_rng(1), sizes[0] / (sizes[0] + sizes[1])
    out = []
    for push in STEPS:
        theta, within = [], []
        for _ in range(200):
            made = of(rng, sizes, push)
            s = [associations(unit_rows(made[k]), made["a"], made["b"]) for k in ("x", "y")]
            theta.append(s[0].mean() - s[1].mean())
            within.append(share * s[0].var() + (1 - share) * s[1].var())
        mean = float(np.mean(theta))
        out.append(mean / np.sqrt(np.mean(within) + share * (1 - share) * mean**2))
    return smooth(STEPS, np.asarray(out))


def unless(effect: float, tests: int) -> Floats:
    """True effects: none; that of the first test is not known where one is planted."""
    truth = np.zeros(tests)
    truth[0] = np.nan if effect else 0.0
    return truth


def needed(sizes: Sizes, effect: float) -> float:
    """The push that has this effect size; none for an effect of 0."""
    return float(np.interp(effect, pushes(sizes), STEPS)) if effect else 0.0


def family(rng: np.random.Generator, sizes: Sizes, effect: float) -> list[dict[str, Floats]]:
    """The vectors of several tests, the first with an effect."""
    first = words(rng, sizes, needed(sizes, effect))
    return [first, *(words(rng, sizes) for _ in range(TESTS - 1))]


def path(sizes: Sizes) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        tests, names, rows = [], [], []
        for number, made in enumerate(family(rng, sizes, effect)):
            lists = {k: tuple(f"{number}{k}{i}" for i in range(len(v))) for k, v in made.items()}
            tests.append(WordSets(f"t{number}", **lists))
            names += [w for k in SETS for w in lists[k]]
            rows += [made[k] for k in SETS]
        vectors = table_of(names, np.concatenate(rows))
        found = associate(vectors, tests, samples=99, placebos=0)
        claims = [Association().finding(row) for row in found]
        return outcome(claims, unless(effect, TESTS), np.asarray([row.q for row in found]))

    return Path(f"association, {sizes[0]} v {sizes[1]} by {sizes[2]} v {sizes[3]} words", draw)


PATHS = [path((8, 8, 8, 8)), path((25, 25, 25, 25)), path((16, 24, 8, 12))]
