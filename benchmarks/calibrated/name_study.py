"""Vectors of names: can a classifier tell the group from names that it has not seen?

Names differ on all axes, some more than others (how frequent a name is moves its vector most), and
groups on none. Planted: groups lie apart on one axis, as far as gives this accuracy on average.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Floats, Outcome, Path, outcome, smooth

from evenhand.compare.rows import judge
from evenhand.probes.name_study import NameStudy, name_items
from evenhand.words.lexicons.people import Group

COVERS = ("evenhand.probes.name_study",)
NAMES, DIMENSIONS = 20, 8
APART = np.linspace(0.0, 4.0, 6)
PEOPLE = [
    (f"{group}{k}", Group(group, (), {"gender": group}, "made"))
    for group in ("female", "male")
    for k in range(NAMES)
]
PROBE = NameStudy(folds=2)


def vectors(rng: np.random.Generator, apart: float) -> Floats:
    made = rng.normal(0, 1, (2 * NAMES, DIMENSIONS)) * np.linspace(0.5, 2.0, DIMENSIONS)
    made[:NAMES, 0] += apart * 0.5
    return np.asarray(made, np.float64)


@cache
def accuracies() -> Floats:
    """Accuracy by how far the groups lie apart, on average."""
    from evenhand.words.names import predict_groups

    rng = np.random.default_rng(1)
    labels = [g.name for _, g in PEOPLE]
    out = [
        np.mean([predict_groups(vectors(rng, apart), labels, folds=2, permutations=2)["accuracy"]
                 for _ in range(40)])
        for apart in APART
    ]  # fmt: skip
    return smooth(APART, np.asarray(out), 0.5)


def draw(rng: np.random.Generator, effect: float) -> Outcome:
    apart = float(np.interp(0.5 + effect, accuracies(), APART)) if effect else 0.0
    items = name_items(PEOPLE).regarding(vectors(rng, apart))
    rows = judge(PROBE.declare(items.having(seed=int(rng.integers(1 << 30)))))
    found = [finding for row in rows for finding in PROBE.say(row, items, rows)]
    truth = [np.nan if effect else 0.5]
    return outcome(found, truth, np.asarray([row.q for row in rows]))


PATHS = [Path(f"name-study, {NAMES} v {NAMES} names", draw)]
