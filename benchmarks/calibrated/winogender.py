"""Winogender: pronouns of occupations against the share of women, as a rank correlation."""

from __future__ import annotations

import math

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.rows import judge
from evenhand.probes.shared.pronouns import GENDERS, Sentence, sentence_items
from evenhand.probes.winogender import Winogender

COVERS = ("evenhand.probes.winogender",)


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
        scores = dict(zip((f"logprob_{g}" for g in GENDERS), (-she, 0 * she, np.nan * she)))
        items = sentence_items(made, about=shares).having(scores)
        rows = judge(Winogender.model_validate({}).declare(items))
        truth = np.asarray([effect, 0.0, np.nan if effect else 0.0])
        return outcome(rows, truth, np.asarray([row.q for row in rows]))

    return Path(f"winogender, {jobs} occupations", draw)


PATHS = [path(60), path(20)]
