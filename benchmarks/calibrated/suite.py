"""A whole suite: several probes' findings at one rate, as an audit decides them."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import (
    Outcome,
    Path,
    discovery,
    divergence,
    generation,
    underspecified,
    winogender,
)

from evenhand.audit.verdicts import decided
from evenhand.runs.finding import Finding

COVERS = ("evenhand.audit.verdicts",)
PARTS = (
    underspecified.PATHS[0], divergence.PATHS[0], discovery.PATHS[0], generation.PATHS[0],
    winogender.PATHS[1],
)  # fmt: skip
"""Probes of the suite; an effect is planted in the first."""


def draw(rng: np.random.Generator, effect: float) -> Outcome:
    made = [part.draw(rng, effect if k == 0 else 0.0) for k, part in enumerate(PARTS)]
    findings = [
        Finding(
            f"{k}/{i}", f"{k}", "made", e.value, "", e.low, e.high, e.p, detectable=e.detectable,
            error=e.error, freedom=e.freedom, model="made",
        )
        for k, part in enumerate(made)
        for i, e in enumerate(part.found)
    ]  # fmt: skip
    found = decided(findings, "made", 0.05)
    p, q, low, high = (
        np.asarray([getattr(f, n) for f in found]) for n in ("p", "q", "low", "high")
    )
    truth = np.concatenate([part.truth for part in made])
    return Outcome(p, q, low, high, truth, found[0].detectable)


PATHS = [Path(f"suite of {len(PARTS)} probes, contrast of underspecified", draw)]
