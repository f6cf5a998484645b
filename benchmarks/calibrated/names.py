"""What else tells groups of names apart: letters of names that are drawn alike for all groups."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path

from evenhand.words.names import lint

COVERS = ("evenhand.words.names",)


def draw(rng: np.random.Generator, effect: float) -> Outcome:
    """An exact test of these names, without interval or detectable effect: none is planted."""
    made = {
        group: [f"{group}{k:02}".ljust(int(n), "x") for k, n in enumerate(sizes)]
        for group, sizes in zip("abc", rng.integers(3, 9, (3, 15)))
    }
    rows = lint(made, pieces=lambda names: (rng.poisson(1.0, len(names)) + 1).tolist())["confounds"]
    p, q = (np.asarray([row[name] for row in rows]) for name in ("p", "q"))
    none = np.full(len(p), np.nan)
    return Outcome(p, q, none, none, none, np.nan)


PATHS = [Path("names lint, 3 groups of 15 names", draw)]
