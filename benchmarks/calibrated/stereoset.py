"""StereoSet: target terms of a few examples each, with leans of their own."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.stereoset import (
    LABELS,
    SCORES,
    SPLITS,
    Example,
    Icat,
    StereoSet,
    example_items,
)

COVERS = ("evenhand.probes.stereoset",)
DOMAINS = ("gender", "profession", "race", "religion")


@cache
def examples(targets: int) -> list[Example]:
    rng = np.random.default_rng(0)
    made = []
    for split in SPLITS:
        for domain in DOMAINS:
            for target in range(targets):
                for number in range(int(rng.integers(3, 9))):
                    name = f"{split}/{domain}/{target}/{number}"
                    ids = [f"{name}/{label}" for label in LABELS]
                    made.append(Example(name, split, f"{domain}{target}", domain, "", ids, ids))
    return made


@cache
def items(targets: int) -> Items:
    return example_items(examples(targets), about=Icat(2))


def path(targets: int) -> Path:
    probe = StereoSet.model_validate({"file": "made up"})

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        lean = {f"{d}{t}": rng.normal(0, 0.12) for d in DOMAINS for t in range(targets)}
        scores: dict[str, float] = {}
        for e in examples(targets):
            here = effect / 100 if (e.split, e.domain) == (SPLITS[0], DOMAINS[0]) else 0.0
            won = rng.random() < 0.5 + lean[e.target] + here
            scores |= zip(e.ids, (float(won), 0.5, 2 * rng.random() - 1), strict=True)
        values = np.asarray([[scores[name] for name in e.ids] for e in examples(targets)])
        scored = items(targets).having(dict(zip(SCORES, values.T)))
        rows = judge(probe.declare(scored))
        at = next(k for k, r in enumerate(rows) if r.test.place == f"{SPLITS[0]}/{DOMAINS[0]}")
        # A planted lean is clipped in some targets and moves the rows over several domains too.
        moved = [r["domain"] in (DOMAINS[0], "overall") for r in rows]
        truth = np.where(moved, np.nan if effect else 50.0, 50.0)
        q = np.asarray([row.q for row in rows])
        return outcome(rows, truth, q, at)

    return Path(f"stereoset, {targets} target terms a domain", draw)


PATHS = [path(12), path(30)]
