"""Underspecified questions: leans contrasted between attributes, over names that meet.

A name is liked (more in some templates and about some attributes than in others), whatever its
group, and every question has a rest of its own: the effects that a small language model's stored
scores split into, in about these sizes. Orders and negations are left out: the lean as asked
averages the orders and does not use the negated question.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.underspecified import leans
from evenhand.probes.underspecified.design import Cells
from evenhand.probes.underspecified.numbers import Sampling, measure_cells

COVERS = (
    "evenhand.probes.underspecified.findings",
    "evenhand.probes.underspecified.leans",
    "evenhand.probes.underspecified.numbers",
)
ATTRIBUTES, TEMPLATES = 12, 3
NAME, ABOUT, IN_TEMPLATE, REST = 0.1, 0.03, 0.05, 0.05
"""Standard deviations of a name's effects: everywhere, about an attribute, in a template."""
Codes = npt.NDArray[np.int64]


def asked(
    first: Codes, second: Codes, lean: np.ndarray, groups: Codes | None
) -> tuple[Cells, leans.Links]:
    """Scores with these leans [pairs, attributes, templates], summed as a run sums them."""
    pair, attribute, template = np.indices(lean.shape).reshape(3, -1)
    terms = int(max(first.max(), second.max())) + 1
    # Both orders alike, the negated question not heeded.
    scores = np.zeros((lean.size, 2, 2, 2))
    scores[..., 0], scores[..., 1] = (
        0.5 + way * lean.ravel()[:, None, None] / 2 for way in (1, -1)
    )
    cells = Cells(
        scores, first[pair], second[pair], attribute, template, tuple(map(str, range(terms))),
        tuple(map(str, range(lean.shape[1]))), tuple(map(str, range(lean.shape[2]))),
        () if groups is None else ("a", "b"), groups, 0,
    )  # fmt: skip
    sums = leans.LeanSums(cells)
    sums.add(cells)
    return cells, sums.links()


def met(size: int, how: str) -> tuple[Codes, Codes]:
    """Who meets whom: names 0 to size - 1 those of the other group."""
    first, second = np.arange(size), np.arange(size) + size
    if how == "all meet":
        return np.repeat(first, size), np.tile(second, size)
    if how == "each meets 3":
        return np.repeat(first, 3), size + (np.repeat(first, 3) + np.tile([0, 1, 5], size)) % size
    return first, second


def groups(size: int, how: str, shared: bool = False) -> Path:
    """An attribute's contrast, or the lean of all attributes, of two groups' names."""
    first, second = met(size, how)
    templates = TEMPLATES if len(first) < 1_000 else 1

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        shape = (2 * size, ATTRIBUTES, templates)
        liked = rng.normal(0, NAME, (2 * size, 1, 1)) + rng.normal(0, ABOUT, (*shape[:2], 1))
        liked = liked + rng.normal(0, IN_TEMPLATE, (2 * size, 1, templates))
        lean = liked[first] - liked[second]
        lean = lean + rng.normal(0, REST, lean.shape)
        truth = np.zeros(ATTRIBUTES + 1)
        if shared:
            lean += effect
            truth[-1] = effect
        else:
            # A contrast of this size: the average attribute moves along.
            lean[:, 0] += effect * ATTRIBUTES / (ATTRIBUTES - 1)
            truth[:] = -effect / (ATTRIBUTES - 1)
            truth[[0, -1]] = effect, effect / (ATTRIBUTES - 1)
        return judged(asked(first, second, lean, np.repeat([0, 1], size)), truth, -1 * shared)

    names = f"{size} disjoint pairs" if how == "pairs" else f"{size} x {size} names, {how}"
    return Path(f"underspecified, {'lean of all' if shared else 'contrast'}, {names}", draw)


def terms(count: int, shared: bool) -> Path:
    """Single terms beside their partners: the first about an attribute, or about all of them.

    Every pair has a rest of its own, about everything and about every attribute.
    """
    first, second = np.triu_indices(count, 1)
    at, scale = (ATTRIBUTES, 1.0) if shared else (0, ATTRIBUTES / (ATTRIBUTES - 1))

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        own = np.zeros((count, ATTRIBUTES, 1))
        own[0, slice(None) if shared else 0] = effect * scale
        lean = own[first] - own[second]
        lean = lean + rng.normal(0, 2 * REST, (len(first), 1, 1))
        lean = lean + rng.normal(0, REST, (len(first), ATTRIBUTES, TEMPLATES))
        # With a planted effect only the first term's truth is plain: it is a partner of the others.
        truth = np.full((count, ATTRIBUTES + 1), np.nan if effect else 0.0)
        truth[0, at] = effect
        return judged(asked(first, second, lean, None), truth.ravel(), at)

    what = "lean of all" if shared else "contrast"
    return Path(f"underspecified, {what}, {count} single terms, all meet", draw)


def judged(made: tuple[Cells, leans.Links], truth: np.ndarray, planted: int) -> Outcome:
    rows = leans.leanings(*made)
    return outcome([r.estimate for r in rows], truth, np.asarray([r.q for r in rows]), planted)


def gamma(size: int, how: str) -> Path:
    """UnQover's gamma as `measure underspecified` reads it: of groups, or of single terms.

    It subtracts the negated question, so a name that is liked whatever is asked cancels, and what
    is left of its liking is about the attribute. No effect is called detectable there.
    """
    grouped = how != "terms"
    first, second = met(size, how) if grouped else np.triu_indices(size, 1)
    count = 2 * size if grouped else size
    sides = np.repeat([0, 1], size) if grouped else None

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        liked = rng.normal(0, ABOUT * grouped, (count, ATTRIBUTES, 1))
        lean = liked[first] - liked[second]
        lean = lean + rng.normal(0, REST, (len(first), ATTRIBUTES, 1))
        lean = lean + rng.normal(0, REST, (len(first), ATTRIBUTES, TEMPLATES))
        cells, _ = asked(first, second, lean, sides)
        cells.scores[:, :, 1] = cells.scores[:, :, 1, ::-1]  # a negation that is heeded
        made = measure_cells(cells, Sampling(resamples=20 if grouped else 200, samples=999))
        rows = [r for r in made.gamma_group or made.gamma if r.group in (None, "a")]
        p, q, low, high = (
            np.asarray([getattr(r, name) for r in rows]) for name in ("p", "q", "low", "high")
        )
        return Outcome(p, q, low, high, np.zeros(len(rows)), np.nan)

    names = f"{size} disjoint pairs" if how == "pairs" else f"{size} x {size} names, {how}"
    return Path(f"underspecified, gamma, {names if grouped else f'{size} single terms'}", draw)


PATHS = [
    groups(40, "pairs"), groups(8, "pairs"), groups(10, "all meet"), groups(20, "all meet"),
    groups(70, "all meet"), groups(20, "each meets 3"), groups(40, "pairs", shared=True),
    groups(10, "all meet", shared=True), groups(20, "all meet", shared=True),
    terms(10, shared=False), terms(10, shared=True), gamma(40, "pairs"), gamma(20, "all meet"),
    gamma(10, "terms"),
]  # fmt: skip
