"""Divergence: shifts of lists of next words with the group, over terms and words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.rows import judge
from evenhand.probes.divergence import terms
from evenhand.probes.divergence.probe import Divergence
from evenhand.probes.divergence.shifts import comparisons

ROW, TERM, TEXT, WORD, NOISE = 0.3, 0.3, 0.5, 0.25, 0.5
"""Standard deviations in nats, about those of a small language model."""


def fair(rng: np.random.Generator, block: terms.Block) -> np.ndarray:
    """Scores of a model to which every row, term and word is its own, and groups are nothing.

    A term likes either side of the list, a text makes all words more or less likely, and a word
    goes better with some groups than with others (controls are one more group to it).
    """
    first, width = len(block.listed.first), len(block.listed.words)
    frames = np.asarray([block.listed.frames.index(o) for o in block.listed.openings])
    sign = np.repeat([0.5, -0.5], [first, width - first])
    out = []
    words = rng.normal(0, 1.5, width)
    own = rng.normal(0, WORD / np.sqrt(2), (len(block.groups) or 1, width))
    for row in block.terms:
        together = rng.normal(0, ROW) * sign + rng.normal(0, NOISE, width)
        apart = TERM * np.exp(rng.normal(0, 0.4))  # some rows lie further apart than others
        for place in range(len(row)):
            term = rng.normal(0, apart) * sign + rng.normal(0, TEXT, frames.max() + 1)[frames]
            mine = own[place if block.groups else 0]
            out.append(words + together + term + mine + rng.normal(0, NOISE, width))
    return np.concatenate(out)


COVERS = ("evenhand.probes.divergence.probe",)


def path(axis: str, only: str, name: str) -> Path:
    """The probe as it is by default, all axes together; one list is shifted for one group."""
    probe = Divergence()
    material = probe.material()
    blocks, questions = material.blocks(), material.questions()

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        parts = [fair(rng, block) for block in blocks]
        for part, block in zip(parts, blocks):
            if (block.axis, block.listed.name) == (axis, only):
                shape = (len(block.terms), len(block.groups), len(block.listed.words))
                part.reshape(shape)[:, 0, : len(block.listed.first)] += effect
        answered = questions.having({"logprob": np.concatenate(parts)})
        rows = judge(test for test in probe.declare(answered) if test.tested)
        truth = np.zeros(len(rows))
        groups = {g for b in blocks if b.axis == axis for g in b.groups}
        wanted = f"{only}_shift", axis
        at = [i for i, row in enumerate(rows) if (row["metric"], row["axis"]) == wanted]
        truth[at] = effect * comparisons(len(groups))[:, 0]
        return outcome(rows, truth, np.asarray([row.q for row in rows]), planted=at[0])

    return Path(f"divergence, {name}", draw)


def placebo(axis: str) -> Callable[[np.random.Generator], float]:
    """Rate of alarms among the placebos of one fair model."""
    probe = Divergence(axes=(axis,))
    material = probe.material()
    blocks, questions = material.blocks(), material.questions()

    def draw(rng: np.random.Generator) -> float:
        scores = np.concatenate([fair(rng, block) for block in blocks])
        seed, answered = int(rng.integers(99)), questions.having({"logprob": scores})
        checks = probe.checks(answered, (), seed)
        return sum(p.alarms for p in checks) / sum(p.tests for p in checks)

    return draw


PATHS = [
    path("gender", "jobs", "two groups, ten rows of terms"),
    path("religion", "danger", "four groups, five rows of terms"),
    path("gender_identity", "valence", "three groups, three rows of terms"),
]
