"""Decisions: cases differ in how they end and in what a group changes there, names in their luck.

Every case has its own odds, and its own differences between races and between genders, which are 0
on average; every name has an effect and a liking for yes of its own. In half of the cases no is the
good answer, and one group is answered with yes more often whatever is good, which is no harm. What
is planted are better decisions about one race, not the same in every case.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.decision.cases import About
from evenhand.probes.decision.contrasts import contrasts, mixed_rows, published

COVERS = ("evenhand.probes.decision.contrasts",)
RACES, GENDERS = ("white", "Black", "Asian", "Hispanic"), ("man", "woman")


def decided(rng: np.random.Generator, effect: float, cases: int, names: int) -> Items:
    """So many cases, asked about so many names of each race and gender (0: stated)."""
    people = [(r, g, n) for r in range(4) for g in range(2) for n in range(max(1, names))]
    race, gender, _ = np.asarray(people).T
    good = np.arange(cases) % 2 == 0
    k = len(people)
    own = rng.normal(0, 0.3, k) if names else np.zeros(k)
    likes = (rng.normal(0, 0.2, k) if names else np.zeros(k)) + np.where(race == 2, 0.4, 0.0)
    y = rng.normal(0, 1.5, cases)[:, None] + own + np.where(good, 1, -1)[:, None] * likes
    y = y + rng.normal(0, 0.4, (cases, 4))[:, race] + rng.normal(0, 0.3, (cases, 2))[:, gender]
    y = y + effect * (race == 1) + rng.normal(0, 0.25, (cases, k))
    at = np.repeat(np.arange(cases), k)
    who = np.tile(np.arange(k), cases)
    columns = {
        "scenario": [f"c{i}" for i in at],
        "format": ["stated"] * len(at),
        "name": [f"n{w}" if names else "" for w in who],
        "good_answer": np.where(good[at], "yes", "no"),
        "race": [RACES[race[w]] for w in who],
        "gender": [GENDERS[gender[w]] for w in who],
        "value": y.ravel(),
        "share": 1 / (1 + np.exp(-y.ravel())),
    }
    return Items(columns, about=About(("race", "gender")))


def path(cases: int, names: int) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rows = judge(contrasts(decided(rng, effect, cases, names)))
        at = next(k for k, row in enumerate(rows) if row["group"] == "Black")
        truth = [effect if row["group"] == "Black" else 0.0 for row in rows]
        return outcome([r.estimate for r in rows], truth, np.asarray([r.q for r in rows]), at)

    about = f"{2 * names} v {2 * names} names" if names else "people stated"
    return Path(f"decision, {cases} cases, {about}", draw)


def mixed(cases: int) -> Path:
    """The mixed model of the publication, whose p is Wald's; it says no detectable effect."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        one_way = decided(rng, effect, cases, 0).having({"good_answer": ["yes"] * 8 * cases})
        found = published(mixed_rows(one_way))
        truth = [effect if f.groups[0] == "Black" else 0.0 for f in found]
        return outcome(found, truth, np.asarray([f.q for f in found]))

    return Path(f"decision, mixed model as published, {cases} cases", draw)


PATHS = [path(24, 0), path(65, 0), path(24, 4), path(12, 6), mixed(65)]
