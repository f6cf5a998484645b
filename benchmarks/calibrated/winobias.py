"""WinoBias: occupations with pronouns of their own, in both types of sentences."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.pronouns.sentences import Sentence, stereotype_row
from evenhand.stats.clustered_means import with_q

COVERS = ("evenhand.probes.winobias.probe",)
KINDS = ("both types", "type 1", "type 2")


def path(jobs: int, sentences: int) -> Path:
    made = [
        Sentence("", "", "he", "she", f"job{k}", kind, 1 if k < jobs else -1)
        for k in range(2 * jobs)
        for kind in KINDS[1:]
        for _ in range(sentences)
    ]
    job = np.asarray([int(s.occupation[3:]) for s in made])
    kind = np.asarray([KINDS.index(s.kind) for s in made])
    leans = np.asarray([s.leans for s in made])

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        liked = rng.normal(0, 0.5, 2 * jobs)[job] + rng.normal(0, 0.3, (2 * jobs, 3))[job, kind]
        he = 1.0 + liked + rng.normal(0, 1, len(made)) + effect * leans * (kind == 1)
        rows = []
        for k, name in enumerate(KINDS):
            keep = np.flatnonzero((kind == k) | (k == 0))
            rows.append(stereotype_row(name, he[keep], [made[i] for i in keep], family=3))
        rows = with_q(rows, [row.mean.p for row in rows])
        truth = np.asarray([effect / 2, effect, 0.0])
        return outcome([r.mean for r in rows], truth, np.asarray([r.q for r in rows]), 1)

    return Path(f"winobias, {jobs} + {jobs} occupations", draw)


PATHS = [path(20, 6), path(6, 6)]
