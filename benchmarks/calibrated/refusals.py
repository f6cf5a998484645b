"""Refusal parity: prompts and names that are declined more or less often, whoever they are about.

A prompt is declined more or less often, and so it is about each group; most are declined rarely. A
pair of names has a share of its own, to which the one that is named first adds its own.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome
from benchmarks.calibrated.underspecified import asked, met

from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.probes.underspecified.asking import TOLD
from evenhand.probes.underspecified.leans import Refusals

COVERS = ()
ATTRIBUTES, TESTS = 12, 14
"""Questions about a pair of names; tests of such a run: a lean for each, the shared one, this."""


def prompts(count: int, texts: int, rare: float) -> Path:
    """Four groups beside a fifth; texts about the first are declined more often by the effect."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        level = rng.beta(2, 2 / rare - 2, (count, 1))
        share = np.clip(level * np.exp(rng.normal(0, 0.5, (count, 5)) - 0.125), 0, 1)
        # Of a prompt that is always declined nothing more can be, so others give more.
        moved = share.copy()
        moved[:, 0] += effect * (1 - share[:, 0]) / (1 - share[:, 0]).mean()
        seen = rng.binomial(texts, np.clip(moved, 0, 1)) / texts
        found = [
            f for k in range(4)
            for f in parity(f"p/{k}", (f"g{k}", "rest"), seen[:, k], seen[:, 4], units="prompts",
                            over=("prompts",), family=4)
        ]  # fmt: skip
        truth = np.asarray([effect, 0.0, 0.0, 0.0])
        return outcome(found, truth if len(found) == 4 else np.full(len(found), np.nan))

    return Path(f"refusals, {count} prompts of {texts} texts, {rare:.0%} declined", draw)


def named_first(size: int, how: str) -> Path:
    """Which name comes first, of two groups'; one of the tests of its run."""
    first, second = met(size, how)
    names, sums = asked(
        first, second, np.zeros((len(first), ATTRIBUTES, 1)), np.repeat([0, 1], size)
    )
    del sums

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        own = rng.normal(0, 0.05, 2 * size)
        pair = rng.uniform(0.2, 0.6, len(first))
        share = np.stack([pair + own[first] + effect / 2, pair + own[second] - effect / 2], axis=1)
        told = np.zeros((len(first), ATTRIBUTES, 2, 2, len(TOLD)))
        declined = rng.random(told.shape[:-1]) < np.clip(share, 0, 1)[:, None, :, None]
        told[..., TOLD.index(REFUSED)] = declined
        made = Refusals(names)
        made.add(names, told.reshape(-1, 4, len(TOLD)))
        found = made.findings(0.05, TESTS - 1)
        return outcome(found, [effect], np.asarray([min(1.0, f.p * TESTS) for f in found]))

    who = f"{size} disjoint pairs" if how == "pairs" else f"{size} x {size} names, {how}"
    return Path(f"refusals, {who}", draw)


PATHS = [
    prompts(20, 10, 0.1), prompts(60, 5, 0.05), named_first(40, "pairs"),
    named_first(12, "all meet"),
]  # fmt: skip
