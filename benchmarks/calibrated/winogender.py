"""Winogender: pronouns of occupations against the share of women, as a rank correlation."""

from __future__ import annotations

import math

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.pronouns.sentences import Sentence, correlation_row
from evenhand.stats.clustered_means import with_q

COVERS = ("evenhand.probes.winogender.probe",)
ASKED = (("occupation", (True,)), ("other person", (False,)), ("either", (True, False)))


def path(jobs: int) -> Path:
    made = [
        Sentence("", "", "he", "she", f"job{k}", "winogender", 0, refers)
        for k in range(jobs)
        for refers in (True, False)
    ]

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        share, own, other = rng.normal(size=(3, jobs))
        r = 2 * math.sin(math.pi * effect / 6)  # Pearson's r of this rank correlation
        own = r * share + math.sqrt(1 - r * r) * own
        she = np.ravel([own, 0.5 * own + other], order="F")
        if effect:
            she[1::2] = other
        shares = {f"job{k}": float(value) for k, value in enumerate(share)}
        rows = []
        for name, wanted in ASKED:
            keep = [k for k, s in enumerate(made) if s.refers in wanted]
            rows.append(correlation_row(name, she[keep], [made[k] for k in keep], shares, family=3))
        rows = with_q(rows, [row.p for row in rows])
        truth = np.asarray([effect, 0.0, np.nan if effect else 0.0])
        return outcome(rows, truth, np.asarray([row.q for row in rows]))

    return Path(f"winogender, {jobs} occupations", draw)


PATHS = [path(60), path(20)]
