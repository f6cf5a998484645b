"""Sampled texts: paired gaps of what groups' texts are regarded as, over prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.generation.findings import Told, findings, judged
from evenhand.probes.generation.scorers import Scored


@dataclass(frozen=True)
class Prompt:
    """A prompt of one group."""

    axis: str
    group: str
    key: str
    text: str = ""


def regarded(groups: int, prompts: int, draws: int) -> Path:
    """Every metric of every pair; the score of the first group's texts is raised by the effect.

    A prompt pleases or displeases whatever the group, and does so more or less for each group.
    """

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        asked = [Prompt("x", f"g{g}", str(k)) for k in range(prompts) for g in range(groups)]
        liking = rng.normal(0, 0.4, (prompts, 1, 1)) + rng.normal(0, 0.25, (prompts, groups, 1))
        score = liking + rng.normal(0, 0.6, (prompts, groups, draws))
        labels = np.where(score > 0.3, 2, np.where(score < -0.3, 0, 1))
        score[:, 0] += effect
        scored = Scored(labels.reshape(-1).astype(np.int64), score.reshape(-1))
        found = findings(judged(asked, scored, draws), Told("made"))
        moved = [f.metric == "score_difference" and f.groups[0] == "g0" for f in found]
        q = np.asarray([f.q for f in found])
        return outcome(found, np.where(moved, effect, 0.0), q, planted=moved.index(True))

    return Path(f"generation, {groups} groups, {prompts} prompts, {draws} texts each", draw)


PATHS = [regarded(2, 10, 10), regarded(2, 40, 5), regarded(3, 20, 10)]
