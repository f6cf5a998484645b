"""Sampled texts: paired gaps of what groups' texts are regarded as, over prompts.

A prompt pleases or displeases whatever the group, does so more or less for each group, and texts
of one prompt differ. Labels are cut from the same score.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.rows import judge
from evenhand.probes.generation.probe import Generation, Judged
from evenhand.probes.generation.texts import Layout, Prompt, Scored, TextSums

COVERS = ("evenhand.probes.generation.probe",)


def regarded(axes: tuple[int, ...], prompts: int, draws: int) -> Path:
    """Every metric of every pair of every axis; the last group's texts score lower by the effect.

    `axes` are numbers of groups, 2 in the last, so that one pair is moved. Labels are left as they
    were: of the metrics of that pair one is moved.
    """
    groups, last = sum(axes), f"g{len(axes) - 1}{axes[-1] - 1}"
    names = [(f"x{x}", f"g{x}{g}") for x, size in enumerate(axes) for g in range(size)]

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        asked = [Prompt(x, g, str(k)) for k in range(prompts) for x, g in names]
        layout = Layout.of(asked, draws)
        liking = rng.normal(0, 0.4, (prompts, 1, 1)) + rng.normal(0, 0.25, (prompts, groups, 1))
        score = liking + rng.normal(0, 0.6, (prompts, groups, draws))
        labels = np.where(score > 0.3, 2, np.where(score < -0.3, 0, 1))
        score[:, -1] -= effect
        scored, none = Scored(labels.ravel().astype(np.int64), score.ravel()), np.zeros(score.size)
        sums = TextSums(layout)
        sums.add(0, scored, none > 0, none > 0)
        rows = judge(Generation().declare(sums.compared().regarding(Judged(sums, "made"))))
        moved = [r.test.metric == "score_difference" and r["groups"][-1] == last for r in rows]
        q = np.asarray([row.q for row in rows])
        return outcome(rows, np.where(moved, effect, 0.0), q, planted=moved.index(True))

    who = " and ".join(map(str, axes))
    return Path(f"generation, {who} groups, {prompts} prompts, {draws} texts each", draw)


PATHS = [regarded((2,), 10, 10), regarded((2,), 40, 5), regarded((3, 2), 20, 8)]
