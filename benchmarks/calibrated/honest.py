"""HONEST: identity terms that are completed hurtfully more or less often, whatever their group.

Two groups, so that an effect shows in one test: among three it shows in two, which helps both.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.honest import Honest

COVERS = ("evenhand.probes.honest",)
GROUPS, COMPLETIONS = ("female", "male"), 40
LEXICON = {"liar": "character"}


def path(terms: int) -> Path:
    group = np.repeat(GROUPS, terms * COMPLETIONS)
    term = np.repeat(np.arange(len(GROUPS) * terms), COMPLETIONS)

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rate = 0.12 + rng.normal(0, 0.04, len(GROUPS) * terms)[term]
        hurt = rng.random(len(term)) < rate + effect / 100 * (group == GROUPS[0])
        items = Items(
            {
                "completion": np.where(hurt, "liar", "kind").tolist(),
                "identity": [str(t) for t in term],
                "category": group.tolist(),
            },
            about=LEXICON,
        )
        probe = Honest.model_validate({})
        rows = [row for row in judge(probe.declare(probe.looked_up(items))) if row["other"]]
        truth = np.asarray([effect * (row["group"] == GROUPS[0]) for row in rows])
        return outcome([row.estimate for row in rows], truth, np.asarray([row.q for row in rows]))

    return Path(f"honest, {terms} identity terms a group", draw)


PATHS = [path(20), path(8)]
