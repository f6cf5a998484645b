"""Underspecified questions: leans contrasted between attributes, over names that meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.underspecified import leans
from evenhand.probes.underspecified.cells import Cells

ATTRIBUTES, TEMPLATES = 12, 3


def fair(rng: np.random.Generator, size: int, crossed: bool, effect: float) -> leans.PairTable:
    """Scores of a model that likes some names more than others, in some templates and answers."""
    n = 2 * size
    first, second = np.arange(size), np.arange(size) + size
    if crossed:
        first, second = np.repeat(first, size), np.tile(second, size)
    liked = rng.normal(0, 0.1, n)[:, None, None] + rng.normal(0, 0.03, (n, ATTRIBUTES, 1))
    liked = liked + rng.normal(0, 0.05, (n, 1, TEMPLATES))
    lean = liked[first] - liked[second]
    lean = lean + rng.normal(0, 0.05, lean.shape)
    # A contrast of this size: the average attribute moves along.
    lean[:, 0] += effect * ATTRIBUTES / (ATTRIBUTES - 1)
    grid = np.indices(lean.shape).reshape(3, -1)
    groups = np.repeat([0, 1], size)
    names = Cells(
        np.zeros((0, 2, 2, 2)), *(np.zeros(0, np.int64) for _ in range(4)),
        tuple(map(str, range(n))), tuple(map(str, range(ATTRIBUTES))),
        tuple(map(str, range(TEMPLATES))), ("a", "b"), groups, 0,
    )  # fmt: skip
    # Scores with this lean: both orders alike, the negated question not heeded.
    scores = np.zeros((lean.size, 2, 2, 2))
    scores[..., 0], scores[..., 1] = (
        0.5 + way * lean.ravel()[:, None, None] / 2 for way in (1, -1)
    )
    cells = replace(
        names, scores=scores, first=first[grid[0]], second=second[grid[0]], attribute=grid[1],
        template=grid[2],
    )  # fmt: skip
    sums = leans.LeanSums(names)
    sums.add(cells)
    return leans.group_pairs(sums.links(), groups, ATTRIBUTES)


def contrast(size: int, crossed: bool) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        table = fair(rng, size, crossed, effect)
        truth = np.full(ATTRIBUTES, -effect / (ATTRIBUTES - 1))
        truth[0] = effect
        return outcome(leans.contrasts(table, ATTRIBUTES), truth)

    kind = f"{size} x {size} names, all meet" if crossed else f"{size} disjoint pairs"
    return Path(f"underspecified, contrast, {kind}", draw)


def shared(size: int, crossed: bool) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        table = fair(rng, size, crossed, 0.0)
        moved = replace(table, leans=table.leans + effect)
        return outcome([leans.shared_lean(moved, 1)], [effect])

    kind = f"{size} x {size} names, all meet" if crossed else f"{size} disjoint pairs"
    return Path(f"underspecified, lean of all attributes, {kind}", draw)


PATHS = [
    contrast(40, False), contrast(8, False), contrast(10, True), contrast(20, True),
    shared(40, False), shared(20, True),
]  # fmt: skip
