"""Counterfactual texts: a classifier that every name, word and text moves, and no group.

A text pleases or not, does so more or less with each group's names (its own gap, 0 on average),
every name or word has an effect of its own, and what is left differs from text to text. Scores are
the logistic of that, and decisions are cut at a half. What is planted moves the scores of the first
group alone, or the bar at which it is decided: texts, names and what is left decide with a lower
bar too. (Turning some decisions by lot would take from names what they do, and so be easier to
find: a group's names then differ by 1 - 2 e of what they differ by otherwise.)
"""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome
from scipy.special import ndtri

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.counterfactual.probe import DECISION, SCORE, Counterfactual, Scored, scored
from evenhand.probes.counterfactual.texts import (
    NAMES,
    PAIRS,
    WORDS,
    Filled,
    Label,
    People,
    Texts,
    View,
    packaged,
)  # fmt: skip

COVERS = ("evenhand.probes.counterfactual.probe", "evenhand.probes.counterfactual.measure")
SIZES = {"text": 0.8, "term": 0.3, "both": 0.2, "rest": 0.3}
"""Standard deviations of what moves a score, as logits."""
LABEL = Label("bad", 1, "high", cut=0.5)


@cache
def own_texts(source: str) -> Texts:
    """evenhand's own texts, as the suite of classifiers asks them."""
    return packaged(People.of((), 6, ()), (source,), None)


@cache
def made_texts(source: str, groups: int, names: int, texts: int) -> Texts:
    """So many texts of a user, with so many names of each group; of pairs, one text a group."""
    cells = [f"g{k}" for k in range(groups)]
    filled = [
        Filled(source, f"t{t}", cell, cell if source == PAIRS else f"{cell}/{n}", f"{t}/{cell}/{n}")
        for t in range(texts)
        for cell in cells
        for n in range(1 if source == PAIRS else names)
    ]
    view = View("groups", source, {cell: (cell, "") for cell in cells}, cells[-1], "")
    return Texts(tuple(filled), (view,))


def simulated(rng: np.random.Generator, found: Texts, effect: float, kind: str) -> Items:
    """A model's scores and decisions; the first group of the first comparison gets the effect."""
    view = found.views[0]
    first = view.contrasts[0][0]
    side = [view.sides.get(f.cell, (f.cell, ""))[0] for f in found.filled]
    codes = {
        name: np.unique(np.asarray(of, str), return_inverse=True)[1]
        for name, of in (
            ("text", [f.item for f in found.filled]),
            ("term", [f.text if f.source == PAIRS else f"{f.cell}|{f.term}" for f in found.filled]),
            ("both", [f"{f.item}|{s}" for f, s in zip(found.filled, side)]),
        )
    }
    z = sum(
        rng.normal(0, SIZES[name], codes[name].max() + 1)[codes[name]] for name in codes
    ) + rng.normal(0, SIZES["rest"], len(side))  # fmt: skip
    planted = np.asarray([s == first for s in side])
    # Half of all texts are called so; with a bar so much lower a share of a half and the effect.
    spread = float(np.sqrt(sum(size**2 for size in SIZES.values())))
    lower = 0.0 if kind == SCORE else spread * float(ndtri(0.5 + effect))
    called = (z + lower * planted >= 0).astype(float)
    score = 1 / (1 + np.exp(-z)) + (effect * planted if kind == SCORE else 0.0)
    texts = Items.from_rows(map(vars, found.filled), about=Scored(found.views))
    return scored(texts, [LABEL], np.stack([score, called])[None])


def path(name: str, found: Texts, kind: str) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        items, probe = simulated(rng, found, effect, kind), Counterfactual()
        rows = judge(probe.declare(items))
        told = [finding for row in rows for finding in probe.say(row, items, rows)]
        view = found.views[0]
        group, reference = view.contrasts[0]
        moved = [f.details["kind"] == kind and group in f.groups for f in told]
        truth = np.where(moved, effect, 0.0)
        if effect and view.source == NAMES and len(found.views) > 1:
            # Names of the group are of both genders, so that no other comparison is moved.
            truth = np.where([f.details["axis"] == view.axis for f in told], truth, 0.0)
        at = next(
            k for k, f in enumerate(told) if moved[k] and f.groups == (group, reference)
        )  # fmt: skip
        return outcome(told, truth, np.asarray([f.q for f in told]), at)

    return Path(f"counterfactual, {name}", draw)


PATHS = [
    path("scores, 12 names a race, 20 texts", own_texts(NAMES), SCORE),
    path("scores, words for identities beside 12 control words, 12 texts", own_texts(WORDS), SCORE),
    path("scores, 8 v 8 names, 60 texts", made_texts(NAMES, 2, 8, 60), SCORE),
    path("scores, 100 pairs of texts", made_texts(PAIRS, 2, 1, 100), SCORE),
    path("decisions, 12 v 12 names, 40 texts", made_texts(NAMES, 2, 12, 40), DECISION),
    path("decisions, 3 groups of 10 names, 60 texts", made_texts(NAMES, 3, 10, 60), DECISION),
]
