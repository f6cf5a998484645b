"""WinoBias: occupations with pronouns of their own, in both types of sentences."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.rows import judge
from evenhand.probes.shared.pronouns import Sentence, sentence_items
from evenhand.probes.winobias import WinoBias

COVERS = ("evenhand.probes.winobias",)
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
    items, probe = sentence_items(made), WinoBias.model_validate({})

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        liked = rng.normal(0, 0.5, 2 * jobs)[job] + rng.normal(0, 0.3, (2 * jobs, 3))[job, kind]
        he = 1.0 + liked + rng.normal(0, 1, len(made)) + effect * leans * (kind == 1)
        scored = items.having({"logprob_male": he, "logprob_female": np.zeros(len(he))})
        rows = judge(probe.declare(scored))
        truth = np.asarray([effect / 2, effect, 0.0])
        return outcome(rows, truth, np.asarray([r.q for r in rows]), 1)

    return Path(f"winobias, {jobs} + {jobs} occupations", draw)


PATHS = [path(20, 6), path(6, 6)]
