"""Two runs of one suite, item by item: names on both sides and templates are all samples."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.audit.comparison.items import changes


def change(names: int, templates: int) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        shape = (names, names, templates)
        one, two, template = np.indices(shape).reshape(3, -1)
        moved = rng.normal(0, 0.05, names)[one] + rng.normal(0, 0.05, names)[two]
        moved = moved + rng.normal(0, 0.03, templates)[template] + rng.normal(0, 0.1, len(one))
        found = changes((moved + effect)[:, None], [one, two, template])
        return outcome(found, [effect])

    return Path(f"compare, {names} x {names} names, {templates} templates", draw)


PATHS = [change(20, 5), change(10, 12)]
