"""Two runs of one suite, item by item: names on both sides and templates are all samples.

Each run leans for some names, templates and single questions; a change of the model moves names
and templates by amounts of their own, and neither the mean nor the size of leans on average.
"""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.audit.comparison.items import changes

COVERS = ("evenhand.audit.comparison.items",)
NAME, TEMPLATE, REST = 0.05, 0.03, 0.1


def change(names: int, templates: int) -> Path:
    one, two, template = np.indices((names, names, templates)).reshape(3, -1)

    def moved(rng: np.random.Generator) -> np.ndarray:
        by_name = rng.normal(0, NAME, names)[one] + rng.normal(0, NAME, names)[two]
        rest = rng.normal(0, REST, len(one))
        return np.asarray(by_name + rng.normal(0, TEMPLATE, templates)[template] + rest)

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        same = 2 * moved(rng)
        before, after = same + moved(rng), same + moved(rng) + effect
        both = np.stack([after - before, np.abs(after) - np.abs(before)], axis=1)
        found = changes(both, [one, two, template])
        return outcome(found, [effect, np.nan if effect else 0.0])

    return Path(f"compare, {names} x {names} names, {templates} templates", draw)


PATHS = [change(20, 5), change(10, 12)]
